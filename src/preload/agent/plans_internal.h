/* Declarations that the files plans*.c share. Only the agent uses them. */
#pragma once

#include "preload/agent/plans.h"
#include "proto/proto.h"

/* The plan of one slot. */
struct td_plan_slot {
	struct td_msg_used used; /* the last USED and STATS; valid if has_used, has_stats */
	struct td_msg_stats stats;
	bool has_used, has_stats;
	bool attached, known; /* known: a GRANT has come */
	bool acknowledged;    /* the GRANT is carried out as far as the gate allows */
	bool ready;           /* READY was sent */
	uint32_t seq, acknowledged_seq;
	uint8_t gate; /* enum td_gate */
	bool others_wait;
	uint64_t device_bytes, total_bytes; /* limits of the GRANT: on the device, and in all */
	uint64_t retry_ns, pause_ns;        /* next attempt to fill, and the pause before it */
	uint64_t again_ns; /* when to try again to move memory that could not leave; 0: none */
	/* dirty: the totals changed since the last report; urgent: report at once */
	bool dirty, urgent;
	uint64_t reported_ns, reported_bytes,
		crossed_bytes; /* time of the last report, and its demanded and crossed bytes */
};

struct td_plan_slot *td_plans_at(unsigned slot);
void td_plans_send(const struct td_msg *msg);
/* Sends USED, which acknowledges the plan `seq`, and STATS, each if it has changed. */
void td_plans_report_slot(unsigned slot, uint32_t seq);
void td_plans_progress(unsigned slot);
/* True if the gate is to open and part of the slot's memory has to stay on the host. */
bool td_plans_spills(unsigned slot);
/*
 * Asks the driver for the device's free and total bytes. False: the slot has no context to ask
 * with.
 */
bool td_plans_ask_device(unsigned slot, uint64_t *ret_free, uint64_t *ret_total);
/*
 * Calls `how`, a move of the backend, with the slot's context current and kept alive. Without a
 * context it returns 0 and calls nothing.
 */
int td_plans_move(unsigned slot, uint64_t limit_bytes,
	int (*how)(unsigned, uint64_t, void (*)(unsigned)), void (*note)(unsigned));

/* -- plans_keep.c -- */

/*
 * Decides by the slot's limits and gate whether the program may keep memory that it frees. If it
 * may not, the kept memory is freed, so that the next report does not count it.
 */
void td_plans_decide_keep(unsigned slot);

/* -- idleness, plans_idle.c -- */

void td_plans_idle_reset(void);
/* Other processes begin to wait: the next step checks for idleness. */
void td_plans_idle_look(void);
/* Returns the latest time for the next call (monotonic ns). */
uint64_t td_plans_idle_step(uint32_t word, uint64_t now_ns);

/* -- the host's memory, plans_host.c -- */

/* Returns the bytes of host memory that the process has, or needs for its plans. */
uint64_t td_plans_host_bytes(void);
/* Frees the slot's unused host memory if other processes lack host memory. */
void td_plans_host_give_back(unsigned slot);
void td_plans_host_message(const struct td_msg_grant *msg);
/*
 * Tries again to move memory that could not leave the slot's device. Returns the time of the next
 * call (monotonic ns), or UINT64_MAX.
 */
uint64_t td_plans_host_again(unsigned slot, uint64_t now_ns);
void td_plans_host_step(void);
