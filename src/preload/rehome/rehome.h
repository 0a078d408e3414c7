/*
 * A program on another GPU than the one that it began on: its contexts, streams, events, modules
 * and functions have twins there, and every call of the program's names a twin where the program
 * names its own object.
 *
 * The program keeps the handles that it was given. objects.c knows for each of them its twin on
 * each GPU that the process has lived on. record.c puts an object into that table when the program
 * makes it; a process that sees one GPU alone records nothing. adapt.c takes the place of the
 * driver's functions in td_real once the process has moved for the first time: a program that never
 * moves calls the driver as before.
 *
 *   hook, wrapper or thunk --> td_real.X --+-- the driver             never moved
 *                                          +-- adapter --> td_true->X  moved: handles are exchanged
 *
 * A home is a device by its ordinal in this process. An object's first home is where the program
 * made it. Its handle there is the one that the program has. Objects of earlier homes stay alive,
 * so that the driver does not give their handles out again.
 *
 * In the thread that calls, the twin of the context is made current in the place of the program's
 * one. Below the top of a thread's stack the program's own contexts may remain: they are exchanged
 * when they come to the top.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/types.h"
#include "proto/unmovable.h"

#define TD_HOMES_MAX 16

/* -- reasons not to move -- */

/* Something has happened that prevents moves for good. */
extern _Atomic uint64_t td_unmovable_noted;

static inline void td_unmovable_note(uint64_t why)
{
	if ((atomic_load_explicit(&td_unmovable_noted, memory_order_relaxed) & why) != why)
		atomic_fetch_or(&td_unmovable_noted, why);
}

/* The reasons that objects are: modules with variables, images that were not kept. */
uint64_t td_rehome_reasons(void);

/* -- calls that make or end objects, against the switch -- */

/*
 * In between, the process does not switch to another GPU. Waits while it does. May be nested. Does
 * nothing in a process that cannot move.
 */
void td_rehome_begin(void);
void td_rehome_end(void);

/* The agent's: from now on begin waits. False: a call that has begun did not end in that time. */
bool td_rehome_close(uint64_t timeout_ns);
void td_rehome_open(void);

/* -- the switch -- */

/* Called once the driver's functions are in td_real: record.c takes the place of a few. */
void td_rehome_load(void);

/* Has the process more than one GPU to live on? False until its first object was made. */
bool td_rehome_is_possible(void);

/*
 * The program's context is to have a twin: `context` is it, on the device `home`. Called by one
 * thread at a time, before the first twin is made. 0, or -EBUSY: another context was named before.
 */
int td_rehome_adopt(CUcontext context, CUdevice home);

/* The device that the process lives on; below 0: none was adopted. */
CUdevice td_rehome_here(void);
/* The program's context there, or its twin; NULL: there is none yet. */
CUcontext td_rehome_context(CUdevice home);

/*
 * Makes the twin of the context on that device. It is current afterwards on the calling thread,
 * which pops it. CUresult.
 */
CUresult td_rehome_make_context(CUdevice home, CUcontext *ret);

/*
 * Makes twins of all objects there. The context there is current. CUresult; those that were made
 * stay.
 */
CUresult td_rehome_make_all(CUdevice home);

/*
 * Closed, with the device drained and memory at its new place: the process lives there from now on.
 */
void td_rehome_switch(CUdevice home);

/* The device that stands for the program's own one; and the program's own for that. */
CUdevice td_rehome_device(CUdevice device);
CUdevice td_rehome_device_shown(CUdevice device);

/*
 * The program's context has ended. If the program has moved, this waits for its work in the context
 * that stands for it, as the driver has waited for that in the program's own.
 */
void td_rehome_wait(const void *context);

/* The program's context has ended: its objects and its twins go with it. */
void td_rehome_context_gone(void *context);

void td_rehome_forked(void);
