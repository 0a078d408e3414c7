/*
 * The state of the scheduler that leads, for people: who leads, the nodes, the tenants with their
 * quotas, and the jobs with why they wait. It is rows of words between tabs, which the leader puts
 * into a file and into the cluster's state, and which `tandem-sched status` shows.
 *
 *   leader NAME REVISION
 *   node NAME GPUS STATE      up, closed, full (no guests), shut (no jobs): the worst of its GPUs
 *   tenant NAME USED QUOTA    in GPUs of guaranteed jobs; "" is everybody else
 *   job ID TENANT PHASE GPUS guest|held PLACES WHY
 *   more N                    jobs that found no room
 */
#pragma once

#include <stdbool.h>

#include "cluster/brain/brain.h"

struct td_text;

/* Adds the rows of what the brain knows. */
void td_status_write(
	const struct td_brain *brain, const char *leader, uint64_t revision, struct td_text *text);
/* Puts the rows into a file, whole or not at all. Returns 0 or -errno. */
int td_status_save(const char *path, const struct td_text *text);
/* Adds the rows to the text, as tables or as JSON. Rows of unknown kinds are left out. */
void td_status_show(const char *rows, bool json, struct td_text *text);
