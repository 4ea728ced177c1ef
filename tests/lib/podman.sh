# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# A Podman of the test's own: storage, state and image lie in $scratch and go with it. Source it
# behind tap.sh, then
#     podman_start || skip_all "$podman_why"
# exports what every podman command below needs; the image is $podman_image, a busybox with git.

podman_image=localhost/sbtest
podman_real=$(command -v podman)

# Programs of this machine with the libraries they need.
podman_copy()
{
	for file in "$@"; do
		[ ! -e "$podman_dir/image$file" ] || continue
		mkdir -p "$podman_dir/image${file%/*}"
		cp -L "$file" "$podman_dir/image$file"
	done
}

podman_root()
{
	mkdir -p "$podman_dir/image/bin" "$podman_dir/image/tmp" "$podman_dir/image/root" \
		"$podman_dir/image/etc"
	chmod 1777 "$podman_dir/image/tmp"
	busybox=$(command -v busybox)
	cp "$busybox" "$podman_dir/image/bin/busybox"
	for applet in $("$busybox" --list | grep -vxE "sh|find|touch|tr|cksum"); do
		[ -e "$podman_dir/image/bin/$applet" ] ||
			ln -s busybox "$podman_dir/image/bin/$applet"
	done
	echo 'root:x:0:0:root:/root:/bin/sh' >"$podman_dir/image/etc/passwd"
	# What busybox lacks: git, programs with the options of GNU, a shell that uses them, and
	# one that looks up names.
	podman_copy "$(command -v dash)"
	ln -s "$(command -v dash)" "$podman_dir/image/bin/sh"
	for program in dash git find touch tr cksum bash; do
		program=$(command -v $program) || continue
		# shellcheck disable=SC2046
		podman_copy "$program" $(ldd "$program" | grep -o '/[^ ]*')
	done
}

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
[containers]
log_driver = "none"
END
	CONTAINERS_STORAGE_CONF=$podman_dir/storage.conf
	CONTAINERS_CONF=$podman_dir/containers.conf
	TMPDIR=$scratch
	export CONTAINERS_STORAGE_CONF CONTAINERS_CONF TMPDIR
	at_exit podman_end
	podman_root
	tar -C "$podman_dir/image" -c . | podman import - "$podman_image" \
		>"$podman_dir/log" 2>&1 &&
		podman run --rm --network none --ulimit nofile=1024:1024 \
			--ulimit nproc=1024:1024 "$podman_image" true \
			>"$podman_dir/log" 2>&1 && return
	podman_why="podman does not run containers here: $(tail -n 1 "$podman_dir/log")"
	return 1
}

# Ends every container and lets go of what is mounted for them.
podman_end()
{
	"$podman_real" rm --force --all --time 0 >/dev/null 2>&1
	while read -r _ where _; do
		case $where in
		"$podman_dir"/*) umount "$where" 2>/dev/null ;;
		esac
	done </proc/mounts
	:
}

# What is left of sandboxes: containers, volumes and archives, a line each.
podman_left()
{
	podman ps --all --format '{{.Names}}'
	podman volume ls --format '{{.Name}}'
	podman images --format '{{.Repository}}:{{.Tag}}' | grep -v "^$podman_image:"
}
