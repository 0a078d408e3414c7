/*
 * The meter: GPU time, SM activity and core demand of a process, into its meter page
 * (proto/gate_page.h). It is on while the gate word says TD_WORD_WINDOW or TD_WORD_DUTY; a window
 * of TD_WINDOW_METER asks for nothing else. While it is off it costs nothing and creates no event.
 *
 * Each launch is charged the time that its kind (demand.h) takes alone. That time is learnt: now
 * and then a launch is put between two events, which are queried at later launches and never waited
 * for. Launches of a kind whose time is not known yet are charged once it is. Work of several
 * streams that overlaps counts for each of them.
 *
 * Under a duty pace.c measures the GPU time, by its own events; the meter then adds only what part
 * of the GPU each launch uses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/context/marker.h"
#include "preload/measure/demand.h"

/*
 * Returns whether what the thread is submitting is measured. A submission nested in another one is
 * not.
 */
static inline bool td_meter_is_on(const struct td_marker *marker)
{
	return (atomic_load_explicit(&marker->depth, memory_order_relaxed) & ~TD_DEPTH_PACED) ==
	       (1 | TD_DEPTH_METERED);
}

/* Called between td_gate_enter and the launch. stream is as the call named it. Keeps errno. */
void td_meter_launch(
	struct td_marker *marker, void *stream, uint32_t kind, const struct td_shape *shape);

/* Called after the launch. */
void td_meter_launched(struct td_marker *marker);

/*
 * Under a duty: adds measured work of this thread. active_ns and core_ns are gpu_ns weighted by SM
 * activity and core demand.
 */
void td_meter_pay(int gpu, uint64_t gpu_ns, uint64_t active_ns, uint64_t core_ns);

/*
 * Called before code is unloaded or a context ends, since the driver may reuse their handles:
 * forgets all kinds.
 */
void td_meter_forget(void);

void td_meter_thread_ends(struct td_marker *marker);

/* Called in the child of a fork. */
void td_meter_forked(void);
