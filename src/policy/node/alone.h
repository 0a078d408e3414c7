/*
 * Moments in which one of several programs with duties has a GPU for itself, so that what its work takes is measured and not guessed.
 *
 * Purpose. A duty is kept by what work takes (preload/gate/budget.h), and events around it measure that only while nobody else is served in between. Programs with
 * duties that overlap always would never know: two with 30 and 60 % and kernels of 20 ms were charged a third too much. So, when one of them has had to guess, the others submit nothing
 * for as long as it takes them to run dry and it to do one piece of work. No assumption is made on how a GPU shares itself.
 *
 *          someone guesses                 the others are dry              measured
 *   QUIET ----------------> HOLDING ------------------------------> ALONE -----------> QUIET, a pause
 *     ^                        |  took too long                       |  took too long
 *     +------------------------+--------------------------------------+
 *
 * Invariants
 *  - one holds nobody up for more than TD_ALONE_MOST_NS at a time, and all of it together takes at most a fifth of the time;
 *  - the pauses double while there is no end of it, up to TD_ALONE_PAUSE_MAX_NS, and begin short again when somebody comes;
 *  - who has not run dry, or been measured, in time four times in a row is waited for again only after twice the longest pause, then twice that, up to TD_ALONE_IN_VAIN_MAX_NS, until
 *    it does its part: one that is stopped, or has work that takes longer than a moment, comes to cost the others a four-hundredth of the time;
 *  - who asks in turn is served in turn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_ALONE_TENANTS_MAX    16
#define TD_ALONE_MOST_NS        150000000ull
#define TD_ALONE_PAUSE_MIN_NS   20000000ull
#define TD_ALONE_PAUSE_MAX_NS   2000000000ull
#define TD_ALONE_IN_VAIN_MAX_NS 64000000000ull

enum td_alone_phase { TD_ALONE_QUIET, TD_ALONE_HOLDING, TD_ALONE_ALONE, TD_ALONE_PHASE_N };

/* A program with a duty that uses the GPU now. Its numbers are what it says itself. */
struct td_alone_tenant {
	uint32_t id;       /* not 0 */
	uint32_t guesses;  /* so far */
	uint32_t dry;      /* the last number of a hold under which it has run dry */
	uint32_t measured; /* the last number under which it has measured a piece of work */
	/* What it is told: its others are held, or it is, under this number; 0: no. */
	uint32_t ret_alone, ret_hold;
	bool ret_measurable; /* as far as is known: all do their part when it is to be measured */
};

/* One part of it that one tenant has to do. */
struct td_alone_trials {
	uint32_t failed; /* in a row, up to as many as make it in vain */
	uint64_t pause_ns, again_ns;
};

struct td_alone_known {
	uint32_t id, guesses; /* what it had guessed when it was served last */
	struct td_alone_trials dry, measure;
};

/* Of one GPU. Zeroed: QUIET. */
struct td_alone {
	enum td_alone_phase phase;
	uint32_t number;  /* of this moment, or the last one */
	uint32_t who;     /* has it, or has had it; 0: nobody yet */
	uint32_t tenants; /* a sum over their ids: another one has come or gone */
	uint64_t since_ns, pause_ns;
	uint64_t next_ns, rest_ns; /* none before; nor for a newcomer */
	struct td_alone_known known[TD_ALONE_TENANTS_MAX];
};

/*
 * count: at most TD_ALONE_TENANTS_MAX; of fewer than two nobody is held. *last_number: of the last moment on any GPU that the same programs may come to; a new one takes the
 * next, so that nobody is believed for what it did in another one. Returns when to step again; UINT64_MAX: when something changes. Nobody tells when a program guesses, so with
 * two or more it is looked for now and then.
 */
uint64_t td_alone_step(struct td_alone *alone, struct td_alone_tenant *tenants, uint32_t count,
	uint32_t *last_number, uint64_t now_ns);
