/*
 * TANDEM_BACKEND=auto (ADR 0006) chooses swap if two conditions hold: every GPU that the program
 * sees can map memory as swap needs it, and the program has no device open through which other
 * hardware learns addresses of GPU memory without CUDA. Otherwise it chooses plain. A loaded
 * library does not count: PyTorch loads libcufile in every process, but few of them use it. The
 * choice is made once, before the first GPU is used, because memory cannot change its backend.
 *
 *   OPEN --both conditions hold--> MOVES --such a device is opened---> STAYS
 *     \--one does not--> PLAIN
 *   GIVEN: the user has set the backend
 *
 * In STAYS the backend is still swap, but none of its memory moves any more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/backend.h"

struct td_choice {
	uint8_t kind;    /* enum td_backend_kind; plain while nothing is chosen */
	uint8_t reason;  /* enum td_backend_reason */
	char device[64]; /* path of the device that prevents moves, cut off; empty: none */
};

/*
 * use: makes `kind` the backend of the process. stay: from now on no memory is moved; called
 * without a lock.
 */
struct td_chooser {
	void (*use)(enum td_backend_kind kind);
	void (*stay)(void);
};

/*
 * Called once, at load. kind: the user's choice, or TD_BACKEND_AUTO, which means plain until
 * td_choose.
 */
void td_choose_init(uint8_t kind, const struct td_chooser *chooser);

/* Called before the first use of a GPU, with the driver initialised: makes the choice. */
void td_choose(void);

void td_choice_get(struct td_choice *ret);

/*
 * Called by the agent, without a lock, before memory moves and once a second: goes to STAYS if such
 * a device is open now. Costs one system call per open file.
 */
void td_choose_look(void);

/* No other thread can fork between these two calls. Keep the time short. */
void td_choose_hold_forks(void);
void td_choose_release_forks(void);

/* Called around fork: meanwhile no thread lists open files or holds forks off. */
void td_choose_before_fork(void);
void td_choose_after_fork(void);
void td_choose_forked(void);
