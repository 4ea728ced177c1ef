/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/host.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <base/cond.h>
#include <base/file.h>
#include <base/owndir.h>
#include <base/str.h>
#include <host/host-bounds.h>
#include <host/host-cold.h>
#include <host/host-network.h>
#include <host/host-priv.h>
#include <host/host-runtime.h>
#include <host/host-storage.h>
#include <host/owner.h>
#include <host/procmon.h>
#include <host/recover.h>
#include <host/storage/idcheck.h>
#include <host/worker.h>

#define PREFIX_MAX 64
#define FIRST_BUCKETS 256
/* A child of a killed host may hold the lock until it comes to its exec. */
#define LOCK_WAIT_MS 2000

int64_t
sb_host_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static bool
is_wildcard(const char *address)
{
	return strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0 ||
		strcmp(address, "0") == 0;
}

int
sb_host_check_options(const struct sb_host_opts *o, struct sb_error *err)
{
	if (!o->state_dir || o->state_dir[0] != '/')
		return sb_fail(err, SB_E_INVAL, "the host needs an absolute state directory");
	if ((unsigned)o->storage > SB_HOST_STORAGE_AUTO)
		return sb_fail(err, SB_E_INVAL, "unknown storage_backend %d", (int)o->storage);
	if ((unsigned)o->runtime > SB_HOST_RUNTIME_AUTO)
		return sb_fail(err, SB_E_INVAL, "unknown container_runtime %d", (int)o->runtime);
	if (o->egress_resolver && !sb_host_network_resolver_ok(o->egress_resolver))
		return sb_fail(err, SB_E_INVAL,
			"egress_resolver %s is no address: use ADDRESS, ADDRESS:PORT or "
			"[ADDRESS]:PORT",
			o->egress_resolver);
	if ((unsigned)o->default_network > SB_HOST_NET_OUTBOUND)
		return sb_fail(err, SB_E_INVAL, "unknown default_network %d",
			(int)o->default_network);
	if (!(o->warn_at > 0 && o->warn_at <= o->critical_at && o->critical_at <= 1))
		return sb_fail(err, SB_E_INVAL,
			"space thresholds %g and %g: need 0 < warn <= critical <= 1", o->warn_at,
			o->critical_at);
	if (((o->bind_addr && sb_str_starts(o->bind_addr, "token:")) ||
		    (o->advertise_addr && sb_str_starts(o->advertise_addr, "token:"))) &&
		!o->port_admit)
		return sb_fail(err, SB_E_INVAL,
			"address %s of ports: nobody here can tell tokens (port_admit)",
			o->bind_addr ? o->bind_addr : o->advertise_addr);
	if (o->max_session_ms < 0)
		return sb_fail(err, SB_E_INVAL, "the longest session is shorter than nothing");
	if (o->bind_addr && !o->advertise_addr && is_wildcard(o->bind_addr))
		return sb_fail(err, SB_E_INVAL,
			"ports listen on %s, which is no address that can be told: advertise-addr "
			"must say how callers reach this machine",
			o->bind_addr);
	if (o->bind_addr && o->advertise_addr && strcmp(o->bind_addr, o->advertise_addr) != 0 &&
		(sb_str_starts(o->bind_addr, "unix:") || sb_str_starts(o->advertise_addr, "unix:")))
		return sb_fail(err, SB_E_INVAL,
			"ports on unix sockets (%s) are told as they are: leave advertise-addr out",
			o->bind_addr);
	if (sb_idcheck_snapshot(o->snapshot_prefix, err) < 0)
		return sb_wrap(err, SB_E_INVAL, "snapshot prefix");
	if (strlen(o->snapshot_prefix) > PREFIX_MAX || strcmp(o->snapshot_prefix, "tool") == 0 ||
		strcmp(o->snapshot_prefix, "fork") == 0)
		return sb_fail(err, SB_E_INVAL, "snapshot prefix \"%.80s\": too long, or reserved",
			o->snapshot_prefix);
	if (o->storage_timeout_ms <= 0 || o->drain_timeout_ms <= 0 || o->shutdown_timeout_ms <= 0 ||
		o->health_interval_ms <= 0 || o->tool_timeout_ms <= 0 ||
		o->transfer_timeout_ms <= 0)
		return sb_fail(err, SB_E_INVAL, "a timeout or interval is not positive");
	return 0;
}

/* Makes the options ours. */
static int
copy_opts(struct sb_host *h, const struct sb_host_opts *opts, struct sb_error *err)
{
	struct sb_host_opts o = SB_HOST_OPTS_INIT;
	const char **str[] = { &h->o.state_dir, &h->o.pool, &h->o.bases_dataset,
		&h->o.sessions_dataset, &h->o.sessions_root_dir, &h->o.bases_dir, &h->o.zfs_path,
		&h->o.zpool_path, &h->o.advertise_addr, &h->o.bind_addr, &h->o.snapshot_prefix,
		&h->o.default_base, &h->o.rootfs, &h->o.box_path, &h->o.bwrap_path,
		&h->o.runsc_path, &h->o.runsc_platform, &h->o.sandbox_netns,
		&h->o.egress_resolver, &h->o.cold_store, &h->o.cold_space, &h->o.cold_key_file };

	memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
	o.size = sizeof o;
	h->o = o;
	for (size_t i = 0; i < sizeof str / sizeof str[0]; i++) {
		int r;

		if (!*str[i] || !**str[i]) {
			*str[i] = NULL;
			continue;
		}
		sb_strlist_add(&h->strings, *str[i]);
		r = sb_strlist_check(&h->strings, err);
		if (r < 0)
			return r;
		*str[i] = h->strings.v[h->strings.n - 1];
	}
	if (!h->o.bind_addr)
		h->o.bind_addr = h->o.advertise_addr ? h->o.advertise_addr : "127.0.0.1";
	sb_host_owner_settle(&h->o, h->owner_why, sizeof h->owner_why);
	return sb_host_check_options(&h->o, err);
}

/*
 * An exclusive flock with a deadline, then shared: helper processes of a killed host may still be
 * at work.
 */
static int
wait_for_helpers(int fd, int64_t ms, struct sb_error *err)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	sb_deadline d = sb_deadline_in(ms);

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return sb_fail_errno(err, "lock the operations file");
		if (sb_deadline_passed(d))
			return sb_fail(err, SB_E_LOCKED,
				"storage commands of the last run are still at work");
		(void)nanosleep(&pause, NULL);
	}
	return flock(fd, LOCK_SH) < 0 ? sb_fail_errno(err, "lock the operations file") : 0;
}

static int
open_state(struct sb_host *h, struct sb_error *err)
{
	sb_autofree char *lock = sb_str_printf("%s/host.lock", h->o.state_dir);
	sb_autofree char *ops = sb_str_printf("%s/ops.lock", h->o.state_dir);
	sb_autofree char *db = sb_str_printf("%s/host.db", h->o.state_dir);
	sb_autoclose int dir = -1;
	struct stat st;
	int r;

	if (!lock || !ops || !db)
		return sb_fail(err, SB_E_NOMEM, "host state");
	dir = sb_owndir_open(h->o.state_dir, "", true, err);
	if (dir < 0)
		return dir;
	if (fstat(dir, &st) < 0)
		return sb_fail_errno(err, "state directory %s", h->o.state_dir);
	(void)snprintf(h->key, sizeof h->key, "%llx-%llx", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	h->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	h->ops_fd = open(ops, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (h->lock_fd < 0 || h->ops_fd < 0)
		return sb_fail_errno(err, "open lock in %s", h->o.state_dir);
	r = sb_file_lock(h->lock_fd, LOCK_WAIT_MS, err);
	if (r < 0)
		return sb_wrap(err, r, "host state %s", h->o.state_dir);
	r = wait_for_helpers(h->ops_fd, h->o.storage_timeout_ms, err);
	if (r < 0)
		return r;
	h->fresh = access(db, F_OK) < 0;
	h->db = sb_hostdb_open(db, err);
	return h->db ? 0 : err ? err->code : SB_E_SYS;
}

static void
host_free(struct sb_host *h)
{
	/* They tell of sessions until they are closed. */
	sb_host_runtime_close_all(h);
	for (size_t i = 0; h->bucket && i < h->n_buckets; i++)
		while (h->bucket[i]) {
			struct sb_hsess *s = h->bucket[i];

			h->bucket[i] = s->next;
			sb_hsess_unref(s);
		}
	free(h->bucket);
	sb_hostdb_close(h->db);
	sb_cold_close(h->cold);
	if (h->st)
		h->st->ops->close(h->st);
	sb_host_event_free(h->events);
	if (h->lock_fd >= 0)
		(void)close(h->lock_fd);
	if (h->ops_fd >= 0)
		(void)close(h->ops_fd);
	sb_strlist_free(&h->strings);
	free(h->files_helper);
	(void)pthread_cond_destroy(&h->cv);
	(void)pthread_mutex_destroy(&h->mu);
	(void)pthread_mutex_destroy(&h->space_mu);
	(void)pthread_mutex_destroy(&h->rt_mu);
	free(h);
}

static struct sb_host *
host_new(struct sb_error *err)
{
	struct sb_host *h = calloc(1, sizeof *h);

	if (h)
		h->bucket = calloc(FIRST_BUCKETS, sizeof(*h->bucket));
	if (!h || !h->bucket) {
		free(h);
		(void)sb_fail(err, SB_E_NOMEM, "host");
		return NULL;
	}
	h->n_buckets = FIRST_BUCKETS;
	h->lock_fd = h->ops_fd = -1;
	h->started_ms = sb_now_ms();
	(void)pthread_mutex_init(&h->mu, NULL);
	(void)pthread_mutex_init(&h->space_mu, NULL);
	(void)pthread_mutex_init(&h->rt_mu, NULL);
	sb_cond_init(&h->cv);
	return h;
}

struct sb_host *
sb_host_open(const struct sb_host_opts *opts, struct sb_error *err)
{
	struct sb_error why = { 0 };
	struct sb_host *h = host_new(&why);
	int r = h ? copy_opts(h, opts, &why) : SB_E_NOMEM;

	if (r == 0)
		r = open_state(h, &why);
	if (r == 0) {
		h->events = sb_host_event_new(h->o.on_event, h->o.event_arg, &why);
		if (sb_host_storage_open(h, &why) == 0) {
			const struct sb_runtime_opts o = { .host = &h->o,
				.key = h->key,
				.on_network = sb_host_network_event,
				.network_arg = h };

			h->rt = sb_runtime_open(h->o.runtime, &o, &why);
		}
		if (!h->st || !h->events || !h->rt)
			r = why.code;
	}
	if (r == 0)
		h->files_helper = sb_runtime_helper_of(&h->o, "sb-files");
	if (r == 0)
		r = sb_runtime_network_check(h->rt, &h->o, h->o.default_network, &why);
	if (r == 0)
		r = sb_host_bounds_check(h, &why);
	if (r == 0)
		r = sb_host_cold_open(h, &why);
	if (r == 0)
		r = sb_host_recover(h, &why);
	if (r < 0) {
		if (h) {
			sb_procmon_stop(h);
			host_free(h);
		}
		if (err)
			*err = why;
		return NULL;
	}
	sb_host_event_flush(h->events);
	return h;
}

int
sb_host_start(struct sb_host *h, struct sb_error *err)
{
	return sb_host_worker_start(h, err);
}

void
sb_host_close(struct sb_host *h)
{
	if (!h)
		return;
	(void)pthread_mutex_lock(&h->mu);
	h->closing = true;
	while (h->calls > 0)
		(void)pthread_cond_wait(&h->cv, &h->mu);
	(void)pthread_mutex_unlock(&h->mu);
	sb_host_worker_stop(h);
	sb_procmon_stop(h);
	sb_host_event_flush(h->events);
	host_free(h);
}

const struct sb_host_opts *
sb_host_options(const struct sb_host *h)
{
	return &h->o;
}

bool
sb_host_closing(struct sb_host *h)
{
	bool closing;

	(void)pthread_mutex_lock(&h->mu);
	closing = h->closing;
	(void)pthread_mutex_unlock(&h->mu);
	return closing;
}

const char *
sb_host_files_helper(const struct sb_host *h)
{
	return h->files_helper;
}

void
sb_host_count_tool(struct sb_host *h, bool failed)
{
	atomic_fetch_add(&h->tools, 1);
	if (failed)
		atomic_fetch_add(&h->tool_errors, 1);
}

void
sb_host_note(struct sb_host *h, const char *kind, const char *session, const char *subject,
	enum sb_host_state state)
{
	sb_host_event_note(h->events, kind, session, subject, state);
}
