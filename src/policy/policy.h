/*
 * The one contract: view (what is so) -> policy step(now) -> plan (what may be).
 * docs/decisions/0001-structure.md.
 *
 * A policy is pure: no clock, I/O, allocation after init or globals; same view and state, same
 * plan. The daemon fills the view from clients and GPUs and carries the plan out; the simulator
 * does both on virtual time with the same code.
 *
 * What the executor (not the policy) guarantees:
 *  - a gate set OPEN or ARMED opens only after every byte of the client is back where the limit
 * lets it be;
 *  - a memory limit is raised only by what is free: the sum of all clients' limits never exceeds
 * the capacity, so a plan may name the final limits at once and need not sequence them;
 *  - a gate set CLOSED is closed exactly: the client drains and acknowledges (phase CLOSED) or,
 * past its deadline, is reported as stuck and reopened.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TD_GPU_MAX    16   /* per node */
#define TD_CLIENT_MAX 1024 /* per node; one client = one process on one GPU */

#define TD_PPM   1000000u
#define TD_NEVER UINT64_MAX

enum td_class {
	TD_CLASS_ONLINE,     /* has a latency objective */
	TD_CLASS_GUARANTEED, /* its throughput is protected */
	TD_CLASS_BESTEFFORT, /* shares what is left, fairly */
	TD_CLASS_N,
};

/* What a client may do (plan). */
enum td_gate {
	TD_GATE_OPEN,
	TD_GATE_ARMED, /* open, and the next launch reports that the client is busy again */
	TD_GATE_CLOSED,
	TD_GATE_N,
};

/*
 * Where a client's gate really is (view):
 *
 *   CLOSED --plan opens--> FILLING --all resident--> OPEN --plan closes--> DRAINING
 * --acknowledged--> CLOSED
 *                             \--plan closes--> CLOSED      \--past the deadline--> OPEN
 * (drain_overrun counts)
 */
enum td_phase {
	TD_PHASE_CLOSED,
	TD_PHASE_FILLING,
	TD_PHASE_OPEN,
	TD_PHASE_DRAINING,
	TD_PHASE_N,
};

struct td_gpu_view {
	uint64_t capacity_bytes; /* what clients may have on the device together, after reserves */
	uint64_t handover_ns; /* smoothed cost of a hand-over that moved memory: drain end to gate
				 open; 0 unknown */
};

struct td_client_view {
	uint32_t id;    /* never reused within the life of a daemon; order of arrival */
	uint32_t gpu;   /* index into td_view.gpus */
	uint32_t group; /* clients with the same group are opened and closed together */
	enum td_class class;
	uint32_t weight; /* 1 and more; share among equals */
	enum td_phase phase;
	bool wants;        /* has work to submit or in flight */
	bool paused;       /* by its owner: never opened */
	bool movable;      /* its memory can leave the device (backends swap and managed) */
	bool pages_itself; /* it runs, slowly, with less on the device than it demands (backend
			      managed) */
	uint32_t drain_overruns; /* drains given up past their deadline */
	uint64_t wants_since_ns; /* when `wants` became true */
	uint64_t idle_since_ns;  /* while !wants: end of its last work, as it reported */
	uint64_t phase_since_ns; /* when `phase` was entered */
	uint64_t
		demanded_bytes; /* allocated on this GPU, and what an allocation in progress (NEED) asks for */
	uint64_t resident_bytes; /* of it, on the device */
	uint64_t limit_bytes;    /* the memory limit in force */
	uint64_t held_ns;        /* total time with the gate open, up to now */
};

struct td_view {
	const struct td_gpu_view *gpus;
	const struct td_client_view *clients; /* ascending id */
	uint32_t gpu_count, client_count;
};

struct td_grant {
	enum td_gate gate;
	uint64_t window_ns;   /* own work that may be in flight while others wait; 0: no bound */
	uint64_t limit_bytes; /* on the device; never below 0 of what is pinned, enforced by the
				 executor */
	bool others_wait;     /* report idleness at once: somebody wants this GPU */
};

struct td_plan {
	struct td_grant *grants; /* client_count entries, in the view's order, filled by the step */
	uint64_t next_wakeup_ns; /* step again at this time even if nothing changes; TD_NEVER: only
				    on change */
};

/* Options that policies read; the daemon's option table sets them live. */
struct td_policy_options {
	bool enabled;            /* off: every gate is open (nvshare's anti-thrash off) */
	uint64_t quantum_ns;     /* nvshare: fixed quantum. tandem: upper bound */
	uint64_t quantum_min_ns; /* tandem: lower bound */
	uint32_t swap_share_ppm; /* tandem: hand-overs may cost at most this share of the time */
	uint64_t window_ns;      /* in-flight bound while a job with a latency objective waits */
};

struct td_policy {
	const char *name;
	const char *summary; /* one line for --help */
	size_t state_bytes;  /* the caller provides this much, zeroed, aligned to 16 */
	void (*step)(void *state, const struct td_policy_options *options,
		const struct td_view *view, uint64_t now_ns, struct td_plan *plan);
};

/* NULL-terminated table of every policy; the default is the first. */
extern const struct td_policy *const td_policies[];

/* NULL if there is none of that name. */
const struct td_policy *td_policy_find(const char *name);
