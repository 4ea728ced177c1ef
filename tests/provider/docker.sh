#!/bin/sh
# SPDX-License-Identifier: MIT
# The docker provider against the conformance suite: containers of a real Podman, or of a real
# Docker daemon (docker_engine=docker), with files of their own and in the directory itself.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need git

build=${SB_TOP_BUILDDIR:-.}
engine=${docker_engine:-podman}
if [ "$engine" = podman ]; then
	. "${SB_TOP_SRCDIR:-.}/tests/lib/podman.sh"
	podman_start || skip_all "$podman_why"
	image=$podman_image
	its_own="CONTAINERS_CONF=$CONTAINERS_CONF"
else
	. "${SB_TOP_SRCDIR:-.}/tests/lib/dockerd.sh"
	dockerd_start || skip_all "$dockerd_why"
	image=$docker_image
	its_own="DOCKER_HOST=$DOCKER_HOST"
fi
SBSYNC_AGENT=$build/sbsync-agent
XDG_STATE_HOME=$scratch/state
export SBSYNC_AGENT XDG_STATE_HOME

# A program that hangs when told to: new commands wait, those that run are stopped.
mkdir "$scratch/bin"
cat >"$scratch/bin/$engine" <<END
#!/bin/sh
while [ -e "$scratch/hung" ]; do sleep 0.05; done
exec "$(command -v "$engine")" "\$@"
END
cat >"$scratch/hang.sh" <<END
on_each()
{
	for p in /proc/[0-9]*; do
		case \$(cat "\$p/comm" 2>/dev/null) in
		podman | conmon | docker) ;;
		*) continue ;;
		esac
		grep -qzx "$its_own" "\$p/environ" 2>/dev/null &&
			kill -"\$1" "\${p#/proc/}" 2>/dev/null
	done
}
case \$1 in
on) touch "$scratch/hung"; on_each STOP ;;
off) rm "$scratch/hung"; on_each CONT ;;
esac
exit 0
END
chmod +x "$scratch/bin/$engine"

left()
{
	"${engine}_left"
}

# suite [ARGUMENT]...
suite()
{
	PATH=$scratch/bin:$PATH timeout "${SB_PROVIDER_SECONDS:-280}" \
		"$build/sbprovider-check" -b docker -o kind=container -o "engine=$engine" \
		-o "image=$image" --hang "sh $scratch/hang.sh" "$@" >"$scratch/out" 2>&1
	status=$?
	[ $status -eq 0 ] || grep -v '^ok' "$scratch/out"
	return $status
}

# The suite in two parts, as each test has five minutes: this one, and docker-work.sh. Of a second
# engine (docker_some=yes) only some of each, unless all is wanted.
life="-c provider -c prepare -c state -c destroy -c find -c reattach -c crash -c capabilities"
life="$life -c persist -c labels -c snapshot -c told -c version -c deadline -c cancel -c hang"
work=
for name in $("$build/sbprovider-check" --list | cut -d' ' -f1); do
	case " $life " in
	*" ${name%%-*} "*) ;;
	*) work="$work -c $name" ;;
	esac
done
if [ -n "${docker_some:-}" ] && [ -z "${SB_PROVIDER_FULL:-}" ]; then
	some="-c prepare -c destroy -c find -c launch-exit -c tools-files -c sync-deletions"
	some="$some -c persist -c hang"
	# shellcheck disable=SC2086
	check "synced: some of the suite passes" suite $some
	is "and nothing is skipped" "$(grep SKIP "$scratch/out")" ""
	is "and nothing is left of it" "$(left)" ""
	check "mounted: it passes, too" suite -o sync=mounted -c prepare -c launch-exit \
		-c tools-files -c destroy-twice
	is "and leaves nothing" "$(left)" ""
	finish
	exit
fi
if [ -n "${docker_some:-}" ]; then
	check "synced: the whole suite passes" suite
	is "and nothing is skipped" "$(grep SKIP "$scratch/out")" ""
	is "and nothing is left of it" "$(left)" ""
	check "mounted: it passes, too" suite -o sync=mounted
	is "and leaves nothing" "$(left)" ""
	finish
	exit
fi
if [ -n "${docker_work:-}" ]; then
	# shellcheck disable=SC2086
	check "synced: what works in it passes" suite $work
	is "and nothing is skipped" "$(grep SKIP "$scratch/out")" ""
	is "and nothing is left of it" "$(left)" ""
	finish
	exit
fi
# shellcheck disable=SC2086
check "synced: its life passes" suite $life
is "and nothing is skipped" "$(grep SKIP "$scratch/out")" ""
is "and nothing is left of it" "$(left)" ""
# Both ways take minutes: all of the second with SB_PROVIDER_FULL=1.
some="-c prepare -c find -c launch-exit -c tools-files -c destroy-twice"
[ -z "${SB_PROVIDER_FULL:-}" ] || some=
# shellcheck disable=SC2086
check "mounted: it passes, too" suite -o sync=mounted $some
is "and skips only what syncs files" \
	"$(grep SKIP "$scratch/out" | grep -v 'the runtime has no files of its own')" ""
is "and leaves nothing" "$(left)" ""
finish
