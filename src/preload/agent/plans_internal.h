/* Shared by the files plans*.c. All of it belongs to the agent. */
#pragma once

#include "preload/agent/plans.h"
#include "proto/proto.h"

/* The plan of one slot. */
struct td_plan_slot {
	struct td_msg_used used; /* these two as sent last, if any were */
	struct td_msg_stats stats;
	bool has_used, has_stats;
	bool attached, known; /* known: a GRANT has come */
	bool acknowledged;    /* it is done as far as this gate allows */
	bool ready;           /* READY was sent */
	uint32_t seq, acknowledged_seq;
	uint8_t gate; /* enum td_gate */
	bool others_wait;
	uint64_t device_bytes, total_bytes; /* may be on the device, and in all */
	uint64_t retry_ns, pause_ns;        /* pause: between attempts to fill */
	uint64_t again_ns;  /* what could not leave may have a place then; 0: nothing */
	bool dirty, urgent; /* the totals have changed since the last report; it cannot wait */
	uint64_t reported_ns, reported_bytes,
		crossed_bytes; /* when it was sent, and what was demanded and had crossed then */
};

struct td_plan_slot *td_plans_at(unsigned slot);
void td_plans_send(const struct td_msg *msg);
/* USED and STATS; the second also acknowledges what was planned last. */
void td_plans_report_slot(unsigned slot, uint32_t seq);
void td_plans_progress(unsigned slot);
/* The gate opens, and what the device has no room for is to lie on the host. */
bool td_plans_spills(unsigned slot);
/* False: there is no context to ask with. */
bool td_plans_ask_device(unsigned slot, uint64_t *ret_free, uint64_t *ret_total);
/*
 * Runs a backend's move with the slot's context current, which does not end meanwhile. Without a
 * context it is not called.
 */
int td_plans_move(unsigned slot, uint64_t limit_bytes,
	int (*how)(unsigned, uint64_t, void (*)(unsigned)), void (*note)(unsigned));

/* -- plans_keep.c -- */

/*
 * May the program keep what it frees, by its limits and its gate? If not, what it has kept goes,
 * before the daemon is told of what there is.
 */
void td_plans_decide_keep(unsigned slot);

/* -- idleness, plans_idle.c -- */

void td_plans_idle_reset(void);
/* Others begin to wait: it is looked at with the next step. */
void td_plans_idle_look(void);
/* Returns when to be called again at the latest. */
uint64_t td_plans_idle_step(uint32_t word, uint64_t now_ns);

/* -- the host's memory, plans_host.c -- */

/* The bytes that the process has there, or is to have by its plans. */
uint64_t td_plans_host_bytes(void);
/* If others lack what the slot keeps there and does not use. */
void td_plans_host_give_back(unsigned slot);
void td_plans_host_message(const struct td_msg_grant *msg);
/*
 * Looks after what could not leave the slot's device; returns when it is to be called again, or
 * UINT64_MAX.
 */
uint64_t td_plans_host_again(unsigned slot, uint64_t now_ns);
void td_plans_host_step(void);
