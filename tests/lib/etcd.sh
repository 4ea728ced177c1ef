#!/bin/sh
# SPDX-License-Identifier: MIT
# A real etcd cluster for tests, on 127.0.0.1 and free ports. Its data lies in DIR, or where
# ETCD_DATA says. Where it cannot run, the exit status is 77 and the reason is on stdout.
#   etcd.sh start DIR MEMBERS [tls] [ARGUMENT]...   arguments are etcd's own
#   etcd.sh stop DIR
#   etcd.sh kill DIR N          member N (from 0) at once; its data stays
#   etcd.sh revive DIR N        starts it again
#   etcd.sh freeze|thaw DIR N   SIGSTOP and SIGCONT
# Leaves in DIR: endpoints (one a line), pid.N, log.N, and with tls ca.pem, client.pem, client.key,
# other.pem and other.key (of an authority that the members do not trust).
set -u

skip()
{
	echo "$1"
	exit 77
}

# certificate AUTHORITY NAME [EXTENSION]...
certificate()
{
	by=$1
	of=$2
	shift 2
	{
		echo "basicConstraints=CA:FALSE"
		for line; do
			echo "$line"
		done
	} >"$dir/$of.ext"
	openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$of" \
		-keyout "$dir/$of.key" -out "$dir/$of.csr" 2>/dev/null &&
		openssl x509 -req -in "$dir/$of.csr" -CA "$dir/$by.pem" -CAkey "$dir/$by.key" \
			-CAcreateserial -days 3 -extfile "$dir/$of.ext" \
			-out "$dir/$of.pem" 2>/dev/null
}

authority()
{
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3 \
		-keyout "$dir/$1.key" -out "$dir/$1.pem" -subj "/CN=$1" 2>/dev/null
}

certificates()
{
	command -v openssl >/dev/null || skip "openssl is not installed"
	authority ca && authority strangers &&
		certificate ca member "subjectAltName=IP:127.0.0.1" \
			"extendedKeyUsage=serverAuth,clientAuth" &&
		certificate ca client "extendedKeyUsage=clientAuth" &&
		certificate strangers other "extendedKeyUsage=clientAuth" || exit 1
}

# Ports that nobody listens on now, as many as asked, each once.
free_ports()
{
	awk -v n="$1" -v seed="$(od -An -N4 -tu4 /dev/urandom)" '
		FNR > 1 { split($2, at, ":"); taken[at[2]] = 1 }
		END {
			srand(seed)
			while (n > 0) {
				port = 20000 + int(rand() * 12000)
				hex = sprintf("%04X", port)
				if (hex in taken)
					continue
				taken[hex] = 1
				print port
				n--
			}
		}' /proc/net/tcp
}

# Starts member $1 with the words that stand in argv.N.
launch()
{
	set --
	while IFS= read -r word; do
		set -- "$@" "$word"
	done <"$dir/argv.$n"
	ETCD_UNSUPPORTED_ARCH=$(uname -m) setsid etcd "$@" >>"$dir/log.$n" 2>&1 </dev/null &
	echo $! >"$dir/pid.$n"
}

# The words of each member, a line each.
write_words()
{
	ports=$(free_ports $((members * 2)))
	cluster=
	n=0
	: >"$dir/endpoints"
	for port in $ports; do
		[ $n -lt "$members" ] || break
		cluster=$cluster${cluster:+,}m$n=http://127.0.0.1:$port
		n=$((n + 1))
	done
	n=0
	for port in $(echo "$ports" | tail -n "$members"); do
		peer=$(echo "$ports" | sed -n $((n + 1))p)
		echo "$scheme://127.0.0.1:$port" >>"$dir/endpoints"
		{
			printf '%s\n' --name "m$n" --data-dir "$data/m$n" \
				--listen-peer-urls "http://127.0.0.1:$peer" \
				--initial-advertise-peer-urls "http://127.0.0.1:$peer" \
				--listen-client-urls "$scheme://127.0.0.1:$port" \
				--advertise-client-urls "$scheme://127.0.0.1:$port" \
				--initial-cluster "$cluster" --initial-cluster-state new \
				--initial-cluster-token "t$$" --logger zap --log-level error \
				--log-outputs stderr "$@"
			[ $scheme = http ] || printf '%s\n' --cert-file "$dir/member.pem" \
				--key-file "$dir/member.key" --client-cert-auth \
				--trusted-ca-file "$dir/ca.pem"
		} >"$dir/argv.$n"
		n=$((n + 1))
	done
}

# ask ENDPOINT PATH BODY
ask()
{
	if [ -f "$dir/ca.pem" ]; then
		curl -s -m 5 --cacert "$dir/ca.pem" --cert "$dir/client.pem" \
			--key "$dir/client.key" -d "$3" "$1$2"
	else
		curl -s -m 5 -d "$3" "$1$2"
	fi
}

# Until every member answers with what the majority knows, or one of them has ended.
wait_ready()
{
	i=0
	while [ $i -lt 600 ]; do
		up=0
		n=0
		while read -r endpoint; do
			kill -0 "$(cat "$dir/pid.$n")" 2>/dev/null || return 1
			case $(ask "$endpoint" /v3/kv/range '{"key":"AA=="}' </dev/null) in
			*'"revision"'*) up=$((up + 1)) ;;
			esac
			n=$((n + 1))
		done <"$dir/endpoints"
		[ $up -lt "$members" ] || return 0
		sleep 0.1
		i=$((i + 1))
	done
	return 1
}

end_all()
{
	for file in "$dir"/pid.*; do
		[ -f "$file" ] || continue
		pid=$(cat "$file")
		kill -CONT "$pid" 2>/dev/null
		kill -KILL "$pid" 2>/dev/null
		rm -f "$file"
	done
}

start()
{
	members=$1
	shift
	command -v etcd >/dev/null || skip "etcd is not installed"
	command -v curl >/dev/null || skip "curl is not installed"
	scheme=http
	if [ "${1-}" = tls ]; then
		scheme=https
		shift
		certificates
	fi
	data=${ETCD_DATA:-$dir/data}
	tries=0
	while [ $tries -lt 5 ]; do
		write_words "$@"
		n=0
		while [ $n -lt "$members" ]; do
			launch
			n=$((n + 1))
		done
		wait_ready && return 0
		end_all
		rm -rf "$data"
		tries=$((tries + 1))
	done
	cat "$dir"/log.* >&2
	return 1
}

main()
{
	verb=$1
	dir=$2
	shift 2
	mkdir -p "$dir"
	case $verb in
	start) start "$@" ;;
	stop) end_all ;;
	kill)
		kill -KILL "$(cat "$dir/pid.$1")"
		;;
	revive)
		n=$1
		launch
		;;
	freeze) kill -STOP "$(cat "$dir/pid.$1")" ;;
	thaw) kill -CONT "$(cat "$dir/pid.$1")" ;;
	esac
}

main "$@"
