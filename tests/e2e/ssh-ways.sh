#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2086
# Ways to a server that are the ssh program's: certificates, a running ControlMaster, a jump. And a
# server in a network namespace of its own.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3 ssh ssh-keygen

src=${SB_TOP_SRCDIR:-.}
build=${SB_TOP_BUILDDIR:-.}
sbsync=$build/sbsync
trees="python3 $src/tests/lib/trees.py"
export SBSYNC_STATE_DIR="$scratch/state"
cd "$scratch" || exit 1
$trees random tree 3 60
ssh-keygen -q -t ed25519 -N '' -f ca
env_line='SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state TMPDIR=@DIR@/tmp'

why=$(sh "$src/tests/lib/sshd.sh" start "$scratch/srv" "$env_line" \
	"TrustedUserCAKeys $scratch/ca.pub")
case $? in
0) ;;
77) skip_all "$why" ;;
*) echo "Bail out! sshd does not start: $why"; exit 1 ;;
esac
dir=$scratch/srv
at_exit "sh $src/tests/lib/sshd.sh stop $dir"
port=$(cat "$dir/port")
user=$(cat "$dir/user")
there=$user@127.0.0.1

# A key that may log in by its certificate only.
ssh-keygen -q -t ed25519 -N '' -f certified
must_fail "a key without its certificate is refused" 1 \
	"$sbsync" mirror --known-hosts "$dir/known_hosts" -F /dev/null -i certified \
	-p "$port" tree "$there:$dir/cert"
ssh-keygen -q -s ca -I test -n "$user" certified.pub
with_certificate()
{
	"$sbsync" mirror -v --known-hosts "$dir/known_hosts" -F /dev/null -i certified \
		-p "$port" tree "$there:$dir/cert" >out 2>&1 || { cat out; return 1; }
	$trees same tree "$dir/cert" && grep -q 'using the ssh program' out ||
		{ cat out; return 1; }
}
check "a certificate lets in, by the ssh program, and that is said" with_certificate

# A master connection that runs is used: no second log-in.
cat >config <<END
Host box
  HostName 127.0.0.1
  Port $port
  User $user
  IdentityFile $dir/id_ed25519
  IdentitiesOnly yes
  UserKnownHostsFile $dir/known_hosts
  ControlPath $scratch/master
END
ssh -F config -M -N -f box </dev/null >/dev/null 2>&1
at_exit "ssh -F $scratch/config -O exit box >/dev/null 2>&1"
logins()
{
	grep -c 'Accepted publickey' "$dir/log"
}
before=$(logins)
by_master()
{
	"$sbsync" mirror -v -F config tree "box:$dir/master" >out 2>&1 || { cat out; return 1; }
	$trees same tree "$dir/master" &&
		grep -q 'using the ssh program (a running ControlMaster)' out ||
		{ cat out; return 1; }
}
check "a running ControlMaster is taken, and that is said" by_master
is "without logging in again" "$(logins)" "$before"
ssh -F config -O exit box >/dev/null 2>&1
wait_for 10 sh -c '! test -S master'
check "when it is gone, libssh2 connects" sh -c \
	"'$sbsync' mirror -v -F config tree 'box:$dir/master' 2>&1 | grep -q 'connected (libssh2'"

cat >>config <<END
Host behind
  HostName 127.0.0.1
  Port $port
  User $user
  IdentityFile $dir/id_ed25519
  UserKnownHostsFile $dir/known_hosts
  ProxyJump box
END
# ssh starts the jump with the configuration of the command line.
by_jump()
{
	"$sbsync" mirror -v -F config tree "behind:$dir/jump" >out 2>&1 || { cat out; return 1; }
	$trees same tree "$dir/jump" && grep -q 'using the ssh program (ProxyJump' out ||
		{ cat out; return 1; }
}
check "a jump host is the ssh program's" by_jump

# Keys with a passphrase: the ssh program asks for it, once at the jump and once behind it.
onterm="python3 $src/tests/lib/onterm.py"
sed "s|IdentityFile .*|IdentityFile $dir/id_locked|; s/^Host box/Host box-locked/
	s/^Host behind/Host behind-locked/; s/ProxyJump box/ProxyJump box-locked/
	/ControlPath/d" config >locked_config
unset SSH_AUTH_SOCK SSH_ASKPASS
asked_for()
{
	$onterm --at "$dir/id_locked':" 'open sesame' "$@" >out 2>&1 || { cat out; return 1; }
	[ "$(grep -c 'Enter passphrase' out)" = 2 ] || { cat out; return 1; }
}
check "what the ssh program asks at a jump can be answered" \
	asked_for "$sbsync" mirror -F locked_config tree "behind-locked:$dir/asked"
check "... and all is there" $trees same tree "$dir/asked"
cat >after.sh <<END
before=\$(stty -g)
"$sbsync" mirror -q -F locked_config tree "behind-locked:$dir/asked" || exit 5
[ "\$before" = "\$(stty -g)" ] || exit 6
[ "\$(ps -o tpgid= -p \$\$)" = "\$(ps -o pgid= -p \$\$)" ] || exit 7
END
check "the terminal is ours again, as it was" asked_for sh after.sh
must_fail "Ctrl-C at the question ends it" 1 $onterm --at "$dir/id_locked':" INT \
	"$sbsync" mirror -F locked_config tree "behind-locked:$dir/never"
check "... and nothing came about" test ! -e "$dir/never"
# A helper that the signal did not reach (the jump's ssh loses one between its prompt and its read)
# would hold the terminal and take the user's next line.
mkdir leaves
cat >leaves/ssh <<END
#!/bin/sh
case " \$* " in *" -G "*) exec ssh "\$@" ;; esac
sh -c 'trap "" INT; exec 3</dev/tty && echo \$\$ >"$scratch/helper"; exec sleep 300' >/dev/null &
until [ -s "$scratch/helper" ]; do sleep 0.05; done
printf 'Who is there? ' >/dev/tty
read -r answer </dev/tty
END
chmod +x leaves/ssh
must_fail "... with a helper that does not hear it" 1 $onterm --at 'there?' INT \
	"$sbsync" mirror -F locked_config --rsh "$scratch/leaves/ssh" tree \
	"behind-locked:$dir/never"
check "... which ends too" wait_for 5 sh -c '[ -s helper ] && ! kill -0 "$(cat helper)"'
# In the background of a terminal nobody can answer: it must not ask, nor hang.
cat >background.sh <<END
set -m
"$sbsync" mirror -F locked_config tree "behind-locked:$dir/never" &
wait \$!
echo "status \$?"
END
in_background()
{
	$onterm --at never x bash background.sh >out 2>&1
	[ $? -eq 97 ] && grep -q 'status 1' out && grep -q 'log-in refused' out ||
		{ cat out; return 1; }
}
if command -v bash >/dev/null; then
	check "from the background of a terminal it fails at once" in_background
else
	skip "from the background of a terminal" "bash is not installed"
fi

# A server with a network of its own, behind a pair of virtual interfaces.
ns=sbt$$
net=10.$(($$ % 200 + 20)).$(($$ / 200 % 250))
lone_server()
{
	[ "$(id -u)" = 0 ] || { why="needs root"; return 1; }
	command -v ip >/dev/null || { why="ip is not installed"; return 1; }
	ip netns add $ns 2>/dev/null || { why="network namespaces are not allowed here"; return 1; }
	at_exit "ip netns del $ns"
	ip link add $ns-a type veth peer name $ns-b netns $ns 2>/dev/null ||
		{ why="no virtual interfaces here"; return 1; }
	at_exit "ip link del $ns-a 2>/dev/null"
	ip addr add $net.1/30 dev $ns-a && ip link set $ns-a up &&
		ip -n $ns addr add $net.2/30 dev $ns-b && ip -n $ns link set $ns-b up ||
		{ why="the interfaces do not come up"; return 1; }
	sed "s/^ListenAddress.*/ListenAddress $net.2/" "$dir/sshd_config" >lone_config
	ip netns exec $ns "$(PATH=$PATH:/usr/sbin command -v sshd)" -D -e \
		-f "$scratch/lone_config" -p 22022 >lone.log 2>&1 </dev/null &
	lone_pid=$!
	at_exit "kill $lone_pid 2>/dev/null"
	wait_for 20 sh -c "ip netns exec $ns grep -q ':5606 00000000:0000 0A' /proc/net/tcp" ||
		{ why="sshd does not listen there: $(tail -n 1 lone.log)"; return 1; }
	echo "[$net.2]:22022 $(cut -d' ' -f1,2 "$dir/host_ed25519.pub")" >lone_known
}
if lone_server; then
	lone="--known-hosts lone_known -F /dev/null -i $dir/id_ed25519"
	in_namespace()
	{
		"$sbsync" mirror -q $lone tree "ssh://$user@$net.2:22022$dir/lone" &&
			$trees same tree "$dir/lone" &&
			"$sbsync" mirror -q $lone "ssh://$user@$net.2:22022$dir/lone" back &&
			$trees same tree back
	}
	check "a server in a network namespace of its own, both ways" in_namespace
	kill $lone_pid
	wait $lone_pid 2>/dev/null
	must_fail "once it is gone" 1 \
		timeout 60 "$sbsync" mirror $lone tree "ssh://$user@$net.2:22022$dir/lone"
	check "host, port, user and what to try are named" sh -c \
		"printf '%s' \"\$0\" | grep -q '$user@$net.2 port 22022: .*is sshd running there'" \
		"$output"
else
	skip "a server in a network namespace of its own" "$why"
fi
finish
