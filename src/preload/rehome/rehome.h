/*
 * Runs a program on another GPU than the one where it began, or with another share of the SMs of
 * its GPU. Its contexts, streams, events, modules and functions have twins there: objects of the
 * same kind that the library makes. Wherever a call of the program names an object, the driver gets
 * the twin.
 *
 * The program keeps the handles that it was given. objects.c has the twin of each handle on each
 * GPU that the process has lived on. record.c enters an object into that table when the program
 * makes it; in a process that sees only one GPU, without MPS, nothing is recorded. adapt.c replaces
 * the driver's functions in td_real once the process has moved for the first time, so a program
 * that never moves calls the driver directly.
 *
 *   hook, wrapper or thunk --> td_real.X --+-- the driver             never moved
 *                                          +-- adapter --> td_true->X  moved: handles are replaced
 *
 * A home is a place where the process lives. The first TD_HOMES_SHARES homes are devices, by their
 * ordinals in this process; the others are further contexts on a device, each with a share of its
 * SMs (an execution affinity, which needs MPS). An object's first home is where the program made
 * it; the handle there is the one that the program has. Objects of earlier homes stay alive, so
 * that the driver does not reuse their handles.
 *
 * On a calling thread the twin of the context is made current in place of the program's context.
 * Further down in a thread's context stack the program's contexts may remain. They are replaced
 * when they come to the top.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/types.h"
#include "proto/unmovable.h"

#define TD_HOMES_SHARES 16 /* the first home with a share of the SMs */
#define TD_HOMES_MAX    26

/* -- reasons not to move -- */

/* Bits of TD_UNMOVABLE: reasons that hold until the process ends. */
extern _Atomic uint64_t td_unmovable_noted;

static inline void td_unmovable_note(uint64_t why)
{
	if ((atomic_load_explicit(&td_unmovable_noted, memory_order_relaxed) & why) != why)
		atomic_fetch_or(&td_unmovable_noted, why);
}

/*
 * Returns the reasons that lie in the objects: modules with variables, images that were not kept.
 */
uint64_t td_rehome_reasons(void);

/* -- calls that make or end objects exclude the switch to another GPU -- */

/*
 * Between these two calls the process does not switch to another GPU. td_rehome_begin waits while
 * it does. May be nested. Does nothing in a process that cannot move.
 */
void td_rehome_begin(void);
void td_rehome_end(void);

/*
 * Agent: makes td_rehome_begin wait from now on. Returns false if a call that had begun before did
 * not end in time. hurry() is called while such calls are waited for, as often as it takes.
 */
bool td_rehome_close(uint64_t timeout_ns, void (*hurry)(void));
void td_rehome_open(void);

/* -- the switch -- */

/* Called once td_real has the driver's functions: record.c replaces some of them. */
void td_rehome_load(void);

/*
 * Is there another GPU that the process could move to, or can its contexts have shares of the SMs?
 * False until its first object is made.
 */
bool td_rehome_is_possible(void);

/* Can a context on the device have a share of its SMs? */
bool td_rehome_has_shares(CUdevice device);

/*
 * Names the program's context, on the device `home`, which is to have twins. Called by one thread
 * at a time, before the first twin is made. Returns 0, or -EBUSY if another context was named
 * before.
 */
int td_rehome_adopt(CUcontext context, CUdevice home);

/* Returns the home that the process lives at; negative: no context was named. */
int td_rehome_here(void);
/* Returns the program's context or its twin at that home; NULL: there is none yet. */
CUcontext td_rehome_context(int home);
/* Returns the number of SMs that the context there has; 0: not known. */
uint32_t td_rehome_sms(int home);
/* Has the context there that many SMs, rounded up as the driver does? */
bool td_rehome_is_for(int home, uint32_t sms);

/*
 * Returns the home on the process's present device for a context with that many SMs: one that was
 * made for as many, or a free one. If there is none, the one whose number of SMs is nearest.
 */
int td_rehome_home_of_share(uint32_t sms);

/*
 * Makes the twin of the context at that home and leaves it current on the calling thread, which has
 * to pop it. Returns a CUresult.
 */
CUresult td_rehome_make_context(int home, CUcontext *ret);

/*
 * Makes the missing twins of all objects at that home, whose context is current. Returns a
 * CUresult; on failure the twins made so far stay.
 */
CUresult td_rehome_make_all(int home);

/*
 * Switches: the process lives at that home from now on. The caller has closed (td_rehome_close),
 * drained the device and moved the memory.
 */
void td_rehome_switch(int home);

/*
 * td_rehome_device: the device on which the program's work for this device runs.
 * td_rehome_device_shown: the reverse.
 */
CUdevice td_rehome_device(CUdevice device);
CUdevice td_rehome_device_shown(CUdevice device);

/*
 * The program has ended its context. If the program has moved, this waits for its work in the twin,
 * as the driver has waited for the work in the program's own context.
 */
void td_rehome_wait(const void *context);

/* The program's context has ended: ends its objects and all twins. */
void td_rehome_context_gone(void *context);

void td_rehome_forked(void);
