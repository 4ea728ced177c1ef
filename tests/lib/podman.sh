# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# A Podman of the test's own: storage, state and image lie in $scratch and go with it. Source it
# behind tap.sh, then
#     podman_start || skip_all "$podman_why"
# exports what every podman command below needs; the image is $podman_image, a busybox with git. It
# is rootless when the test is an ordinary user's (tests/lib/rootless.sh).
. "${SB_TOP_SRCDIR:-.}/tests/lib/image.sh"

podman_image=localhost/sbtest
podman_real=$(command -v podman)

podman_start()
{
	podman_dir=$scratch/podman
	for program in podman runc busybox dash; do
		command -v $program >/dev/null || {
			podman_why="$program is not installed"
			return 1
		}
	done
	mkdir -p "$podman_dir/root" "$podman_dir/run" "$podman_dir/tmp"
	cat >"$podman_dir/storage.conf" <<END
[storage]
driver = "${SB_PODMAN_DRIVER:-overlay}"
graphroot = "$podman_dir/root"
rootless_storage_path = "$podman_dir/root"
runroot = "$podman_dir/run"
END
	# As little of this machine's own as can be; crun does not start where cgroups are mixed.
	cat >"$podman_dir/containers.conf" <<END
[engine]
runtime = "runc"
tmp_dir = "$podman_dir/tmp"
static_dir = "$podman_dir/root/libpod"
volume_path = "$podman_dir/root/volumes"
events_logger = "none"
cgroup_manager = "cgroupfs"
lock_type = "file"
[engine.runtimes]
runsc = ["$podman_dir/runsc"]
[containers]
log_driver = "none"
END
	# gVisor as it runs anywhere: no virtual machine, no control groups of its own.
	cat >"$podman_dir/runsc" <<END
#!/bin/sh
exec runsc --platform=ptrace --ignore-cgroups --network=none "\$@"
END
	chmod +x "$podman_dir/runsc"
	CONTAINERS_STORAGE_CONF=$podman_dir/storage.conf
	CONTAINERS_CONF=$podman_dir/containers.conf
	TMPDIR=$scratch
	export CONTAINERS_STORAGE_CONF CONTAINERS_CONF TMPDIR
	at_exit podman_end
	image_root "$podman_dir/image"
	tar -C "$podman_dir/image" -c . | podman import - "$podman_image" \
		>"$podman_dir/log" 2>&1 &&
		podman run --rm --network none --ulimit nofile=1024:1024 \
			--ulimit nproc=1024:1024 "$podman_image" true \
			>"$podman_dir/log" 2>&1 && return
	podman_why="podman does not run containers here: $(tail -n 1 "$podman_dir/log")"
	return 1
}

# Ends every container and lets go of what is mounted for them; rootless also the process that
# holds its namespace, and the files of users that only it knows.
podman_end()
{
	"$podman_real" rm --force --all --time 0 >/dev/null 2>&1
	while read -r _ where _; do
		case $where in
		"$podman_dir"/*) umount "$where" 2>/dev/null ;;
		esac
	done </proc/mounts
	[ "$(id -u)" -ne 0 ] || return 0
	"$podman_real" unshare rm -rf "$podman_dir/root" "$podman_dir/run" >/dev/null 2>&1
	holder=$(find "$podman_dir" "${XDG_RUNTIME_DIR:-/nowhere}" -name pause.pid \
		-exec cat {} + 2>/dev/null)
	[ -z "$holder" ] || kill "$holder" 2>/dev/null
	:
}

# What is left of sandboxes: containers, volumes and archives, a line each.
podman_left()
{
	podman ps --all --format '{{.Names}}'
	podman volume ls --format '{{.Name}}'
	podman images --format '{{.Repository}}:{{.Tag}}' | grep -v "^$podman_image:"
}
