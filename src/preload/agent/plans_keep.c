/*
 * The part of plans.c that decides whether the program may keep memory that it frees (the backend's
 * trim). It may keep a little, and only while its limits have room for as much again. Otherwise
 * other processes may need that memory.
 */
#include "preload/agent/moves.h"
#include "preload/agent/plans.h"
#include "preload/agent/plans_internal.h"
#include "preload/link/client_internal.h"
#include "proto/words.h"

/* The least room that the limits must have, in bytes. */
#define ROOM_LEAST (2ull << 20)

static bool fits(uint64_t has, uint64_t bytes, uint64_t most)
{
	return has <= most && bytes <= most - has;
}

void td_plans_decide_keep(unsigned slot)
{
	const struct td_plan_slot *plan = td_plans_at(slot);
	const struct td_backend *b = td_plans_backend();
	struct td_memory_stats stats;
	bool may =
		plan->known && plan->gate == TD_GATE_OPEN && td_plans_closing() == TD_CLOSING_NONE;

	if (!b || !b->trim)
		return;
	if (may) {
		td_client_totals(slot, &stats);
		may = fits(stats.resident_bytes, ROOM_LEAST, plan->device_bytes) &&
		      fits(stats.demanded_bytes + stats.paged_bytes, ROOM_LEAST, plan->total_bytes);
	}
	td_client_set_keep(slot, may);
	if (!may)
		b->trim(slot, false);
}

void td_plans_trim_idle(void)
{
	const struct td_backend *b = td_plans_backend();

	for (unsigned i = 0; b && b->trim && !td_moves_is_held() && i < TD_SLOT_MAX; i++)
		b->trim(i, true);
}
