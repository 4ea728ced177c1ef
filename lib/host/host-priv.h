/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_PRIV_H
#define SB_HOST_HOST_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include <host/event.h>
#include <host/host.h>
#include <host/hostdb.h>
#include <host/hsess.h>
#include <host/proc.h>
#include <host/runtime/runtime.h>
#include <host/storage/storage.h>
#include <sb/host-exec.h>
#include <sb/host-snapshot.h>

struct sb_cold;
struct sb_procmon;

/*
 * The host as its own files and the tools see it. Lock order: host `mu`, session `mu`, database.
 * Nobody delivers an event while holding one of them.
 */
struct sb_host {
	struct sb_host_opts o; /* `strings` owns its strings */
	struct sb_strlist strings;
	struct sb_hostdb *db;
	bool fresh; /* the database was made by this open */
	struct sb_storage *st;
	char storage_why[SB_STORAGE_WHY_MAX];
	struct sb_runtime *rt;                        /* the default */
	struct sb_runtime *rts[SB_HOST_RUNTIME_AUTO]; /* by kind, opened by its first session;
							 guarded by `rt_mu` */
	pthread_mutex_t rt_mu;
	char owner_why[96]; /* sessions belong to the host's own user: why */
	char *files_helper; /* bin/sb-files; NULL: it is not there */
	char key[40]; /* names this host in the marks of processes: the same after a restart */
	int lock_fd;  /* one host a state directory */
	int ops_fd;   /* our helper processes share it: see sb_storage_zfs_open */
	int64_t started_ms;
	struct sb_cold *cold; /* cold storage; NULL: none */
	char cold_host[33];   /* what we are called there */
	atomic_bool cooling;  /* one that was paused for long is on its way there */
	struct sb_host_event_queue *events;
	struct sb_procmon *monitor;

	pthread_mutex_t mu; /* guards the map and what follows */
	pthread_cond_t cv;
	struct sb_hsess **bucket; /* the map: see host-map.h */
	size_t n_buckets, n_sessions;
	unsigned calls; /* under way */
	bool closing;   /* shutdown began */
	bool worker_on, worker_stop, worker_poke;
	pthread_t worker;

	pthread_mutex_t space_mu;
	struct sb_storage_space space;
	int64_t space_at;   /* monotonic ms; 0: never */
	_Atomic int status; /* enum sb_host_health_status, as the worker found it last */

	atomic_uint proxies; /* that have not let go of the host yet */
	atomic_ullong created, paused, resumed, destroyed, forked, adopted, recovered;
	atomic_ullong deep_paused, deep_resumed;
	atomic_ullong snapshots, snapshots_deleted, rollbacks, turns, tools, tool_errors, launched;
};

#endif
