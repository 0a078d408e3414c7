/*
 * TANDEM_BACKEND=auto (ADR 0006): swap where every GPU that the program sees maps memory as swap
 * needs it, and the program has no device open through which other hardware is told where memory
 * is, behind CUDA's back; else plain. What is loaded does not count: PyTorch loads libcufile in
 * every process, and few of them use it. The choice is made once, before the first GPU is known to
 * anybody: memory cannot change its backend.
 *
 *   OPEN --nothing speaks against it--> MOVES --such a device is opened---> STAYS
 *     \--something does--> PLAIN
 *   GIVEN: the user has said which
 *
 * In STAYS it is swap still, and all of its memory stays where it is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/backend.h"

struct td_choice {
	uint8_t kind;    /* enum td_backend_kind; while nothing is chosen: plain */
	uint8_t reason;  /* enum td_backend_reason */
	char device[64]; /* that speaks against moving: its path, cut; empty: none */
};

/* use: makes it the process's backend. stay: its memory is not moved any more; no lock is held. */
struct td_chooser {
	void (*use)(enum td_backend_kind kind);
	void (*stay)(void);
};

/*
 * Called once, at load. kind is the user's choice, or TD_BACKEND_AUTO: then plain is in use until
 * td_choose.
 */
void td_choose_init(uint8_t kind, const struct td_chooser *chooser);

/* A GPU is about to be used for the first time. The driver is initialised. */
void td_choose(void);

void td_choice_get(struct td_choice *ret);

/*
 * Agent only, with no lock, before memory moves and now and then: does it stay from now on? Costs
 * one system call for each open file.
 */
void td_choose_look(void);

/* Between these, held for moments, no other thread forks. */
void td_choose_hold_forks(void);
void td_choose_release_forks(void);

/* Around fork: no thread lists open files meanwhile, or holds forks off. */
void td_choose_before_fork(void);
void td_choose_after_fork(void);
void td_choose_forked(void);
