#!/bin/sh
# SPDX-License-Identifier: MIT
# Real SSH servers for tests, on 127.0.0.1 and a high port, with their own keys and configuration.
# Where one cannot run, the exit status is 77 and the reason is on stdout.
#   sshd.sh start DIR [CONFIG LINE]...      OpenSSH
#   sshd.sh start-dropbear DIR [ARGUMENT]...
#   sshd.sh stop DIR
# Leaves in DIR: port, pid, user, home, log, id_ed25519 (may log in), id_ecdsa, id_rsa, id_locked
# (passphrase "open sesame"), other (may not), host_* and known_hosts. With SSHD_ACCOUNT=NAME set,
# as root, the server sees an account of that name without a password, a plain user (uid 4321) with
# the home DIR/home, by a mount namespace with its own /etc/passwd; the machine's accounts are not
# touched. SSHD_SETUP is shell text run in that namespace before the server starts, with $0 as DIR.
# @DIR@ in configuration lines becomes DIR. SSHD_PAM=yes lets PAM decide. SSHD_KEYS names the DIR of
# another server whose keys are used again.
set -u

skip()
{
	echo "$1"
	exit 77
}

keys()
{
	[ -f "$dir/id_ed25519" ] && return
	if [ -f "${SSHD_KEYS:-/}/id_ed25519" ]; then
		cp -p "$SSHD_KEYS"/id_* "$SSHD_KEYS"/other* "$SSHD_KEYS"/authorized_keys "$dir"
		cp -p "$SSHD_KEYS"/host_* "$dir"
		return
	fi
	for t in ed25519 ecdsa rsa; do
		bits=
		[ $t = rsa ] && bits='-b 2048'
		# shellcheck disable=SC2086
		ssh-keygen -q -t $t $bits -N '' -C "test $t" -f "$dir/id_$t"
		# shellcheck disable=SC2086
		ssh-keygen -q -t $t $bits -N '' -C host -f "$dir/host_$t"
	done
	ssh-keygen -q -t ed25519 -N 'open sesame' -C locked -f "$dir/id_locked"
	ssh-keygen -q -t ed25519 -N '' -C other -f "$dir/other"
	cat "$dir"/id_*.pub >"$dir/authorized_keys"
	chmod 644 "$dir/authorized_keys"
}

# SHLVL keeps bash from reading the account's .bashrc: what that does and
# says is not what is tested.
config()
{
	cat <<-END
		ListenAddress 127.0.0.1
		HostKey $dir/host_ed25519
		HostKey $dir/host_ecdsa
		HostKey $dir/host_rsa
		AuthorizedKeysFile $dir/authorized_keys
		PidFile none
		UsePAM ${SSHD_PAM:-no}
		StrictModes no
		PermitRootLogin yes
		MaxStartups 100
		LogLevel VERBOSE
	END
	for line; do
		echo "$line"
	done | sed "s|@DIR@|$dir|g; s|^SetEnv |&SHLVL=2 |"
	echo "SetEnv SHLVL=2" # the first line of a kind counts
}

# An account that exists in the server's mount namespace only.
account()
{
	[ "$(id -u)" = 0 ] || skip "an account of its own for the server needs root"
	unshare -m true 2>/dev/null || skip "mount namespaces are not allowed here"
	mkdir -p "$dir/home"
	chown 4321:4321 "$dir/home"
	chmod 755 "$dir"
	{
		cat /etc/passwd
		echo "$SSHD_ACCOUNT::4321:4321:test:$dir/home:/bin/sh"
	} >"$dir/passwd"
	{
		cat /etc/shadow
		echo "$SSHD_ACCOUNT::19000:0:99999:7:::"
	} >"$dir/shadow"
	chmod 600 "$dir/shadow"
	echo "$dir/home" >"$dir/home_path"
	echo "$SSHD_ACCOUNT" >"$dir/user"
}

# Runs "$@" in the background, in the namespace with the account if there is one.
launch()
{
	if [ -n "${SSHD_ACCOUNT:-}" ]; then
		setsid unshare -m sh -c 'mount --make-rprivate / &&
			mount --bind "$0/passwd" /etc/passwd &&
			mount --bind "$0/shadow" /etc/shadow &&
			eval "${SSHD_SETUP:-}" &&
			exec "$@"' "$dir" "$@" >"$dir/log" 2>&1 </dev/null &
	else
		setsid "$@" >"$dir/log" 2>&1 </dev/null &
	fi
	echo $! >"$dir/pid"
}

# Waits until somebody listens on the port, or the server is gone.
listens()
{
	hex=$(printf ':%04X' "$1")
	i=0
	while [ $i -lt 200 ]; do
		kill -0 "$(cat "$dir/pid")" 2>/dev/null || return 1
		grep -q "$hex 00000000:0000 0A" /proc/net/tcp && return 0
		sleep 0.05
		i=$((i + 1))
	done
	return 1
}

random_port()
{
	echo $(($(od -An -N2 -tu2 /dev/urandom) % 20000 + 30000))
}

# start_on_free_port ADDRESS COMMAND...: "-p ADDRESS PORT" is added, in one word.
start_on_free_port()
{
	address=$1
	shift
	tries=0
	while [ $tries -lt 5 ]; do
		port=$(random_port)
		grep -q "$(printf ':%04X ' "$port")" /proc/net/tcp && continue
		launch "$@" -p "$address$port"
		if listens "$port"; then
			echo "$port" >"$dir/port"
			for t in ed25519 ecdsa rsa; do
				[ -f "$dir/host_$t.pub" ] || continue
				echo "[127.0.0.1]:$port $(cut -d' ' -f1,2 "$dir/host_$t.pub")"
			done >"$dir/known_hosts"
			return 0
		fi
		tries=$((tries + 1))
	done
	cat "$dir/log" >&2
	return 1
}

main()
{
	verb=$1
	dir=$2
	shift 2
	PATH=$PATH:/usr/sbin:/sbin
	mkdir -p "$dir"
	chmod 700 "$dir"
	id -un >"$dir/user"
	echo "${HOME:-/}" >"$dir/home_path"
	case $verb in
	start)
		command -v sshd >/dev/null || skip "sshd is not installed"
		if [ "$(id -u)" = 0 ] && [ ! -d /run/sshd ]; then
			mkdir -m 755 /run/sshd 2>/dev/null ||
				skip "sshd wants /run/sshd, which cannot be made"
		fi
		keys
		[ -z "${SSHD_ACCOUNT:-}" ] || account
		config "$@" >"$dir/sshd_config"
		start_on_free_port "" "$(command -v sshd)" -D -e -f "$dir/sshd_config"
		;;
	start-dropbear)
		command -v dropbear >/dev/null || skip "dropbear is not installed"
		keys
		[ -z "${SSHD_ACCOUNT:-}" ] || account
		[ -f "$dir/db_host" ] || dropbearkey -t ed25519 -f "$dir/db_host" >/dev/null 2>&1
		rm -f "$dir"/host_*
		dropbearkey -y -f "$dir/db_host" | grep '^ssh-' >"$dir/host_ed25519.pub"
		# dropbear reads ~/.ssh/authorized_keys only.
		home=$(cat "$dir/home_path")
		[ -n "${SSHD_ACCOUNT:-}" ] ||
			skip "dropbear takes keys from the home directory only; needs an account"
		mkdir -p "$home/.ssh"
		cp "$dir/authorized_keys" "$home/.ssh/authorized_keys"
		chmod 700 "$home/.ssh"
		chown -R 4321:4321 "$home"
		start_on_free_port 127.0.0.1: "$(command -v dropbear)" -F -E -r "$dir/db_host" "$@"
		;;
	stop)
		[ -f "$dir/pid" ] || return 0
		kill "$(cat "$dir/pid")" 2>/dev/null
		rm -f "$dir/pid"
		;;
	esac
}

main "$@"
