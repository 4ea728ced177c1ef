# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# A Docker daemon of the test's own: its data, state and socket lie in $scratch and go with it; it
# has no bridge and touches no firewall. Source it behind tap.sh, then
#     dockerd_start || skip_all "$dockerd_why"
# exports DOCKER_HOST; the image is $docker_image, a busybox with git.
. "${SB_TOP_SRCDIR:-.}/tests/lib/image.sh"

docker_image=localhost/sbtest

dockerd_start()
{
	dockerd_dir=$scratch/docker
	for program in docker dockerd containerd runc busybox dash setpriv unshare; do
		PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null || {
			dockerd_why="$program is not installed"
			return 1
		}
	done
	[ "$(id -u)" -eq 0 ] || {
		dockerd_why="only root can start a Docker daemon"
		return 1
	}
	mkdir -p "$dockerd_dir"
	# gVisor as it runs anywhere: no virtual machine, no control groups of its own.
	cat >"$dockerd_dir/runsc" <<END
#!/bin/sh
exec runsc --platform=ptrace --ignore-cgroups --network=none "\$@"
END
	chmod +x "$dockerd_dir/runsc"
	echo "{\"runtimes\": {\"runsc\": {\"path\": \"$dockerd_dir/runsc\"}}}" \
		>"$dockerd_dir/daemon.json"
	# Its mounts are its own, so that they go with it, also after a kill.
	(
		PATH=$PATH:/usr/sbin:/sbin
		# Where containerd leaves its stacks when it is slow to end.
		TMPDIR=$dockerd_dir
		export TMPDIR
		exec unshare --mount --propagation private setpriv --pdeathsig TERM dockerd \
			--iptables=false --ip6tables=false --bridge=none \
			--data-root "$dockerd_dir/data" --exec-root "$dockerd_dir/exec" \
			--pidfile "$dockerd_dir/pid" -H "unix://$dockerd_dir/sock" \
			--config-file "$dockerd_dir/daemon.json"
	) >"$dockerd_dir/log" 2>&1 &
	dockerd_job=$!
	DOCKER_HOST=unix://$dockerd_dir/sock
	# No settings, contexts and plugins of whoever runs the tests.
	DOCKER_CONFIG=$dockerd_dir/config
	export DOCKER_HOST DOCKER_CONFIG
	unset DOCKER_CONTEXT DOCKER_TLS_VERIFY DOCKER_CERT_PATH
	at_exit dockerd_end
	wait_for 60 dockerd_answers || {
		dockerd_why="the Docker daemon does not start: $(dockerd_said)"
		return 1
	}
	image_root "$dockerd_dir/image"
	tar -C "$dockerd_dir/image" -c . | docker import - "$docker_image" \
		>"$dockerd_dir/tried" 2>&1 &&
		docker run --rm --network none "$docker_image" true >"$dockerd_dir/tried" 2>&1 &&
		return
	dockerd_why="docker does not run containers here: $(tail -n 1 "$dockerd_dir/tried")"
	return 1
}

# True also for one that has ended: there is nothing to wait for.
dockerd_answers()
{
	docker version --format '{{.Server.Version}}' || ! kill -0 "$dockerd_job"
}

dockerd_said()
{
	grep -E 'level=(fatal|error)|^failed' "$dockerd_dir/log" | tail -n 1
}

dockerd_end()
{
	# shellcheck disable=SC2046
	docker rm --force --volumes $(docker ps --all --quiet) >/dev/null 2>&1
	kill "$dockerd_job" 2>/dev/null
	wait "$dockerd_job" 2>/dev/null
	:
}

# What is left of sandboxes: containers, volumes and archives, a line each.
docker_left()
{
	docker ps --all --format '{{.Names}}'
	docker volume ls --format '{{.Name}}'
	docker images --format '{{.Repository}}:{{.Tag}}' | grep -v "^$docker_image:"
}
