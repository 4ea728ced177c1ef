#!/bin/sh
# SPDX-License-Identifier: MIT
# What lies in a state directory is believed, and names commands to run: only one that is ours, that
# nobody else can write to and that is no link is used.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"

build=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)
cd "$scratch" || exit 1
SBSYNC_STATE_DIR=$scratch/state
export SBSYNC_STATE_DIR
sbsync=$build/sbsync
sbctl=$build/sbctl

mkdir ws
echo 1 >ws/f
# A remote shell that runs the command here, and leaves a trace.
cat >rsh <<END
#!/bin/sh
touch $scratch/ran
shift
exec sh -c "\$*"
END
chmod 755 rsh
HOME=$scratch
XDG_CACHE_HOME=$scratch/cache
export HOME XDG_CACHE_HOME
check "a session with a remote shell" \
	"$sbsync" start -q --name s --rsh "$scratch/rsh" ws "h:$scratch/far"
check "mirrors have state, too" "$sbsync" mirror -q ws copy
"$sbctl" ls >/dev/null 2>&1
[ -d state/sandboxes ] || "$sbctl" recover >/dev/null 2>&1

# refused WHAT PATH HOW UNDO WAY-OUT: nothing is believed, nothing runs, and the way out is named.
refused()
{
	rm -f ran
	eval "$3"
	for verb in "sync s" "stop s" "status s" "ls" "watch s" "recover --all" "diff s" "log s" \
		"mirror ws copy"; do
		case $2:$verb in
		state/sessions*:mirror*) continue ;;
		state/pairs*:status* | state/pairs*:ls | state/pairs*:log*) continue ;;
		state/pairs*:recover* | state/pairs*:stop*) continue ;;
		state/sessions/s:ls | state/sessions/s:rec*) continue ;;
		esac
		must_fail "$1: sbsync $verb is refused" 1 timeout 60 "$sbsync" $verb
		case $output in
		*"$5"*) ;;
		*) not_ok "$1: sbsync $verb names the way out" "$output" ;;
		esac
	done
	check "$1: nothing was run" test ! -e ran
	eval "$4"
}
for dir in state state/sessions state/sessions/s state/pairs; do
	refused "$dir that others write to" $dir "chmod 777 $dir" "chmod 700 $dir" "chmod 700"
	refused "$dir that the group writes to" $dir "chmod 770 $dir" "chmod 700 $dir" "chmod 700"
	refused "$dir as a link" $dir "mv $dir elsewhere; ln -s $scratch/elsewhere $dir" \
		"rm $dir; mv elsewhere $dir" "rm "
	if [ "$(id -u)" = 0 ]; then
		refused "$dir of another user" $dir "chown 65534 $dir" "chown 0 $dir" "chown"
	else
		skip "$dir of another user" "only root can make one"
	fi
done
chmod 755 state/sessions state/sessions/s
check "what others could only read is used" "$sbsync" sync -q s
is "and closed to them" "$(stat -c %a state/sessions state/sessions/s | tr '\n' ' ')" "700 700 "
check "and the session works" test -e ran

for dir in state state/sandboxes; do
	[ -d $dir ] || continue
	chmod 777 $dir
	must_fail "sbctl believes no $dir that others write to" 1 timeout 60 "$sbctl" ls
	case $output in
	*"chmod 700"*) ok "and names the way out" ;;
	*) not_ok "and names the way out" "$output" ;;
	esac
	chmod 700 $dir
done
finish
