/* SPDX-License-Identifier: MIT */
/* The shell script that starts the agent on a far machine, or takes it from its input first. */
#include "config.h"

#include <string.h>

#include <base/quote.h>

#include <sync/remote/deploy.h>

/*
 * The script that runs on the far side, in one line and without single quotes and exclamation
 * marks, because the log-in shell that takes it apart may be csh or fish. Arguments: nonce, digest,
 * how many bytes for the agent are on standard input already (the script drops them when an upload
 * has to come first, and we send them again behind it), then the agent's. It answers with lines
 * "sbsync:NONCE:WORD ...":
 *   ready                             the agent's stream follows
 *   absent MACHINE SYSTEM gzip|raw    it waits for an upload: a line
 *                                     "gzip|raw LENGTH CRC SIZE SHA256", then LENGTH bytes
 *   failed write | exec | verify | run CODE TEXT
 * The nonce is an argument, so an echo of this text does not look like an answer.
 */
static const char script[] =
	"n=$1; D=$2; P=$3; shift 3; t=; "
	"m() { printf \"\\nsbsync:%s:%s\\n\" \"$n\" \"$*\"; }; "
	"runs() { case $(\"$1\" --version 2>/dev/null </dev/null) in sbsync*) return 0;; esac; "
	"return 1; }; "
	/* The usual case first, with as few processes as can be. */
	"f=${XDG_CACHE_HOME:-${HOME:-/}/.cache}/sbsync/agent-$D; "
	"if [ -f \"$f\" ] && [ -x \"$f\" ] && runs \"$f\"; then m ready; exec \"$f\" \"$@\"; fi; "
	"u=$(id -u 2>/dev/null); "
	/* Runs $1 with d set to each place in turn until it succeeds. */
	"each() { for d in ${HOME:+\"${XDG_CACHE_HOME:-$HOME/.cache}/sbsync\"} "
	"\"${XDG_RUNTIME_DIR:-/run/user/$u}/sbsync\" \"${TMPDIR:-/tmp}/sbsync-$u\" "
	"\"/var/tmp/sbsync-$u\" "
	"\"/dev/shm/sbsync-$u\"; do \"$1\" && return 0; done; return 1; }; "
	/* A directory in a place others write to must be ours and writable by us alone. */
	"own() { case $d in */sbsync-*) ;; *) return 0;; esac; o=$(ls -ldn \"$d\" 2>/dev/null); "
	"case $o in d????[-]??[-]*) set -- $o; [ \"$3\" = \"$u\" ];; *) return 1;; esac; }; "
	"there() { f=$d/agent-$D; [ -f \"$f\" ] && [ -x \"$f\" ] && own && runs \"$f\"; }; "
	"if each there; then m ready; exec \"$f\" \"$@\"; fi; "
	/* Where can we write, and execute what we wrote? The agent itself gets the user's umask
	   back. */
	"U=$(umask); umask 077; w=write; clean() { [ -z \"$t\" ] || rm -f \"$t\"; }; trap clean 0 "
	"1 2 13 15; "
	"fits() { mkdir -p \"$d\" 2>/dev/null && own || return 1; t=$d/.new-$n; "
	"{ printf \"#\\041/bin/sh\\necho sbsync\\n\" >\"$t\"; } 2>/dev/null && chmod 700 \"$t\" || "
	"return 1; "
	"w=exec; runs \"$t\" && return 0; rm -f \"$t\"; return 1; }; "
	"each fits || { t=; [ $w = exec ] && command -v python3 >/dev/null 2>&1 && w=memory; "
	"[ $w = memory ] || { m failed $w; exit 1; }; }; "
	/*
	 * Not every head takes -c. The sender waits for our answer, so reading ahead does no harm.
	 */
	"if printf x | head -c 1 >/dev/null 2>&1; then take() { head -c \"$1\"; }; "
	"else take() { dd bs=1 count=\"$1\" 2>/dev/null; }; fi; "
	"[ \"$P\" = 0 ] || take \"$P\" >/dev/null; "
	"g=raw; command -v gzip >/dev/null 2>&1 && g=gzip; "
	"m absent \"$(uname -m)\" \"$(uname -s)\" $g; "
	"read c k s z h || exit 1; [ \"$c\" = abort ] && exit 0; "
	"unpack() { if [ \"$c\" = gzip ]; then take \"$k\" | gzip -dc; else take \"$k\"; fi; }; "
	"if [ $w = memory ]; then m ready; umask $U; exec python3 -c \"$0\" \"$c\" \"$k\" "
	"\"agent-$D\" /proc/self/fd/ "
	"\"$@\"; fi; "
	"whole() { if command -v sha256sum >/dev/null 2>&1; then v=$(sha256sum <\"$t\"); case $v "
	"in \"$h\"*) return 0;; esac; "
	"elif command -v cksum >/dev/null 2>&1; then v=$(cksum <\"$t\"); case \"$v \" in \"$s $z "
	"\"*) return 0;; esac; "
	"else [ \"$(wc -c <\"$t\")\" -eq \"$z\" ] && return 0; fi; return 1; }; "
	"rm -f \"$t\"; unpack >\"$t\" 2>/dev/null; whole 2>/dev/null || { m failed verify; exit 1; "
	"}; "
	"chmod 700 \"$t\"; "
	"runs \"$t\" || { r=$(\"$t\" --version 2>&1 </dev/null); m failed run $? $r; exit 1; }; "
	"f=$d/agent-$D; mv -f \"$t\" \"$f\" || { m failed write; exit 1; }; t=; "
	"find \"$d\" -name \"agent-*\" -mtime +7 -exec rm -f {} \\; 2>/dev/null; "
	"find \"$d\" -name \".new-*\" -mtime +1 -exec rm -f {} \\; 2>/dev/null; "
	"trap - 0 1 2 13 15; umask $U; m ready; exec \"$f\" \"$@\"";

/*
 * The memory way, as $0 of the script: reads the upload exactly and executes it from a memfd. The
 * answer "ready" is given before, so here a failure shows as the end of the stream. One line and no
 * inner quotes, for the same shells.
 */
static const char memory[] = "exec(\"import os,sys,zlib\\n"
			     "a=sys.argv\\n"
			     "k=int(a[2])\\n"
			     "b=bytearray()\\n"
			     "while len(b)<k:\\n"
			     " p=os.read(0,min(65536,k-len(b)))\\n"
			     " if len(p)==0: sys.exit(1)\\n"
			     " b+=p\\n"
			     "b=bytes(b)\\n"
			     "if len(a[1])==4: b=zlib.decompress(b,31)\\n"
			     "f=os.memfd_create(a[3],0)\\n"
			     "while b: b=b[os.write(f,b):]\\n"
			     "os.execv(a[4]+str(f),a[3:4]+a[5:])\")";

void
sb_deploy_command(const char *nonce, const char *digest, size_t skip, const char *const *argv,
	struct sb_buf *out)
{
	sb_buf_add_str(out, "exec sh -c '");
	sb_buf_add_str(out, script);
	sb_buf_add_str(out, "' ");
	sb_quote_argument(out, memory);
	sb_buf_addf(out, " %s %s %zu", nonce, digest, skip);
	for (; argv && *argv; argv++) {
		sb_buf_add_char(out, ' ');
		sb_quote_argument(out, *argv);
	}
}

uint32_t
sb_deploy_cksum(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t table[256];
	uint32_t crc = 0;

	for (uint32_t i = 0; i < 256; i++) {
		uint32_t v = i << 24;

		for (int k = 0; k < 8; k++)
			v = v & 0x80000000u ? v << 1 ^ 0x04c11db7u : v << 1;
		table[i] = v;
	}
	for (size_t i = 0; i < len; i++)
		crc = crc << 8 ^ table[(crc >> 24 ^ p[i]) & 0xff];
	/* The length follows, least significant byte first, without leading zeros. */
	for (size_t n = len; n > 0; n >>= 8)
		crc = crc << 8 ^ table[(crc >> 24 ^ n) & 0xff];
	return ~crc;
}
