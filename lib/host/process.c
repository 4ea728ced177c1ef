/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/hostimpl.h>

void sb_proc_unref(struct sb_proc *p) { (void)p; }
bool sb_proc_running(const struct sb_proc *p) { (void)p; return false; }
int sb_proc_restore(struct sb_host *h, struct sb_hsess *s, struct sb_error *err) { (void)h; (void)s; (void)err; return 0; }
void sb_proc_kill_all(struct sb_host *h, struct sb_hsess *s, int g) { (void)h; (void)s; (void)g; }
int sb_proc_freeze(struct sb_host *h, struct sb_hsess *s, bool f, struct sb_error *err) { (void)h; (void)s; (void)f; (void)err; return 0; }
void sb_proc_remove_logs(struct sb_host *h, struct sb_hsess *s) { (void)h; (void)s; }
void sb_proc_stop_monitor(struct sb_host *h) { (void)h; }
