/* Reads the options of sched_options.def, which all schedulers have. */
#pragma once

#include "cluster/sched/scheduler.h"

struct td_err;

struct td_sched_settings {
	struct td_scheduler_options scheduler;
	char name[128];    /* scheduler.name */
	bool has_profiles; /* there may be profiles of programs */
};

/* Fills in what is so without options. The settings must stay where they are. */
void td_sched_settings_init(struct td_sched_settings *settings, bool has_profiles);
/* Takes an option by its letter. Returns 0; 1: it is none of these; or -errno with err. */
int td_sched_settings_take(
	struct td_sched_settings *settings, int letter, const char *text, struct td_err *err);
/*
 * Refuses a policy that needs profiles of programs where there are none: why is "" or the end of a
 * sentence about it. Returns 0, or -ENOTSUP with err.
 */
int td_sched_settings_check(
	const struct td_sched_settings *settings, const char *why, struct td_err *err);
