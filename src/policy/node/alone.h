/*
 * Moments in which one of several programs with duties has a GPU to itself, so that its work is
 * measured and not guessed.
 *
 * Purpose. A duty is charged by the time that work takes (preload/gate/budget.h). Events around the
 * work measure that only while no other program is served in between, so programs with duties that
 * always overlap would never know: two with 30 and 60 % and kernels of 20 ms were charged a third
 * too much. So, when a program has had to guess, the others submit nothing until they have run dry
 * and it has done one piece of work. Nothing is assumed about how a GPU divides its time.
 *
 *          someone guesses           the others are dry          measured
 *   QUIET ----------------> HOLDING ---------------------> ALONE -----------> QUIET, a pause
 *     ^                        |  took too long              |  took too long
 *     +------------------------+-----------------------------+
 *
 * Invariants
 * - a moment holds programs up for at most TD_ALONE_MOST_NS, and all moments together take at most
 *   a fifth of the time;
 * - the pauses double while moments go on, up to TD_ALONE_PAUSE_MAX_NS, and begin short again when
 *   a program comes;
 * - a program that four times in a row did not run dry, or was not measured, in time is waited for
 *   again only after twice the longest pause, then twice that, up to TD_ALONE_IN_VAIN_MAX_NS, until
 *   it does its part. A program that is stopped, or whose work takes longer than a moment, thus
 *   costs the others a four-hundredth of the time in the end;
 * - programs that ask in turn are served in turn.
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
	/*
	 * The numbers to tell it: of the moment in which its others are held, or in which it is
	 * held; 0: none.
	 */
	uint32_t ret_alone, ret_hold;
	bool ret_measurable; /* as far as is known: all do their part when it is to be measured */
};

/* A program's record in one of the two parts. */
struct td_alone_trials {
	uint32_t failed; /* in a row, up to as many as make it in vain */
	uint64_t pause_ns, again_ns;
};

struct td_alone_known {
	uint32_t id, guesses; /* what it had guessed when it was served last */
	struct td_alone_trials dry, measure;
};

/* The state of one GPU. Zeroed means QUIET. */
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
 * Steps one GPU of `count` tenants, at most TD_ALONE_TENANTS_MAX; with fewer than two nobody is
 * held. *last_number is the number of the last moment on any GPU that the same programs may come
 * to. A new moment takes the next number, so that an answer to another moment is not believed.
 * Returns when to step again; UINT64_MAX: on a change. Programs do not report a guess at once, so
 * with two or more it steps now and then to look for one.
 */
uint64_t td_alone_step(struct td_alone *alone, struct td_alone_tenant *tenants, uint32_t count,
	uint32_t *last_number, uint64_t now_ns);
