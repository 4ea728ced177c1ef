#!/bin/sh
# SPDX-License-Identifier: MIT
# The docker provider against the conformance suite: containers of a real Podman, with files of
# their own and in the directory itself.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/podman.sh"
need git

build=${SB_TOP_BUILDDIR:-.}
podman_start || skip_all "$podman_why"
SBSYNC_AGENT=$build/sbsync-agent
XDG_STATE_HOME=$scratch/state
export SBSYNC_AGENT XDG_STATE_HOME

# A podman that hangs when told to: new commands wait, those that run are stopped.
mkdir "$scratch/bin"
cat >"$scratch/bin/podman" <<END
#!/bin/sh
while [ -e "$scratch/hung" ]; do sleep 0.05; done
exec "$podman_real" "\$@"
END
cat >"$scratch/hang.sh" <<END
on_each()
{
	for p in /proc/[0-9]*; do
		case \$(cat "\$p/comm" 2>/dev/null) in
		podman | conmon) ;;
		*) continue ;;
		esac
		grep -qzx "CONTAINERS_CONF=$CONTAINERS_CONF" "\$p/environ" 2>/dev/null &&
			kill -"\$1" "\${p#/proc/}" 2>/dev/null
	done
}
case \$1 in
on) touch "$scratch/hung"; on_each STOP ;;
off) rm "$scratch/hung"; on_each CONT ;;
esac
exit 0
END
chmod +x "$scratch/bin/podman"

# suite [ARGUMENT]...
suite()
{
	PATH=$scratch/bin:$PATH timeout 280 "$build/sbprovider-check" -b docker \
		-o kind=container -o engine=podman -o "image=$podman_image" \
		--hang "sh $scratch/hang.sh" "$@" >"$scratch/out" 2>&1
	status=$?
	[ $status -eq 0 ] || grep -v '^ok' "$scratch/out"
	return $status
}

# The suite in two parts, as each test has five minutes: this one, and docker-work.sh.
life="-c provider -c prepare -c state -c destroy -c find -c reattach -c crash -c capabilities"
life="$life -c persist -c labels -c snapshot -c told -c version -c deadline -c cancel -c hang"
work=
for name in $("$build/sbprovider-check" --list | cut -d' ' -f1); do
	case " $life " in
	*" ${name%%-*} "*) ;;
	*) work="$work -c $name" ;;
	esac
done
if [ -n "${docker_work:-}" ]; then
	# shellcheck disable=SC2086
	check "synced: what works in it passes" suite $work
	is "and nothing is skipped" "$(grep SKIP "$scratch/out")" ""
	is "and nothing is left of it" "$(podman_left)" ""
	finish
	exit
fi
# shellcheck disable=SC2086
check "synced: its life passes" suite $life
is "and nothing is skipped" "$(grep SKIP "$scratch/out")" ""
is "and nothing is left of it" "$(podman_left)" ""
# Both ways take minutes: all of the second with SB_PROVIDER_FULL=1.
some="-c prepare -c find -c launch-exit -c tools-files -c destroy-twice"
[ -z "${SB_PROVIDER_FULL:-}" ] || some=
# shellcheck disable=SC2086
check "mounted: it passes, too" suite -o sync=mounted $some
is "and skips only what syncs files" \
	"$(grep SKIP "$scratch/out" | grep -v 'the runtime has no files of its own')" ""
is "and leaves nothing" "$(podman_left)" ""
finish
