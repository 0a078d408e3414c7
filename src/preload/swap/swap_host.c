/* Backend swap: how much host memory its chunks need, and how much of it is unused. */
#include "base/bounds.h"
#include "base/time.h"
#include "preload/base/settings.h"
#include "preload/link/host.h"
#include "preload/memory/arena.h"
#include "preload/swap/swap.h"

static bool is_idle(const struct td_range *range, const struct td_chunk *chunk)
{
	return chunk->place == TD_PLACE_DEVICE && chunk->arena && !range->moving;
}

/*
 * First pause before a move is tried again. The host may lack memory only for a moment, and nothing
 * tells when it has some.
 */
#define STRANDED_MIN_NS TD_NS_PER_S
#define STRANDED_MAX_NS (64 * TD_NS_PER_S)

uint64_t td_swap_stranded(unsigned slot)
{
	if (td_host_granted() > td_swap.stranded[slot].grant_bytes ||
		td_time_now_ns() >= td_swap.stranded[slot].until_ns)
		return 0;
	return td_swap.stranded[slot].bytes;
}

uint64_t td_swap_again_ns(unsigned slot)
{
	if (!td_swap_stranded(slot))
		return 0;
	return td_time_now_ns() < td_swap.stranded[slot].again_ns ? td_swap.stranded[slot].again_ns
								  : td_swap.stranded[slot].until_ns;
}

void td_swap_strand(unsigned slot, bool stranded)
{
	const struct td_memory_stats *t = &td_swap.totals[slot];
	uint64_t now_ns = td_time_now_ns(), lasts_ns;

	pthread_mutex_lock(&td_swap.lock);
	lasts_ns = td_swap.stranded[slot].lasts_ns;
	lasts_ns = !lasts_ns                        ? STRANDED_MIN_NS
		   : lasts_ns < STRANDED_MAX_NS / 2 ? 2 * lasts_ns
						    : STRANDED_MAX_NS;
	td_swap.stranded[slot].bytes = stranded ? t->resident_bytes - t->fixed_bytes : 0;
	td_swap.stranded[slot].grant_bytes = td_host_granted();
	/*
	 * While the gate is closed the agent can try a move before the memory counts as movable.
	 * While it is open, the daemon closes it only for memory that counts as movable.
	 */
	td_swap.stranded[slot].again_ns = now_ns + lasts_ns;
	td_swap.stranded[slot].until_ns = now_ns + 2 * lasts_ns;
	td_swap.stranded[slot].lasts_ns = stranded ? lasts_ns : 0;
	pthread_mutex_unlock(&td_swap.lock);
}

/* Returns the slot's host bytes in use and its largest chunk. The caller holds the lock. */
static uint64_t used_bytes(unsigned slot, uint64_t *ret_largest)
{
	uint64_t bytes = 0;

	*ret_largest = 0;
	for (const struct td_range *range = td_swap.ranges; range; range = range->next) {
		for (size_t i = 0; i < range->count && range->slot == slot; i++) {
			const struct td_chunk *chunk = &range->chunks[i];

			if (chunk->place == TD_PLACE_ARENA || chunk->place == TD_PLACE_HOST)
				bytes += chunk->bytes;
			*ret_largest = td_max_u64(*ret_largest, chunk->bytes);
		}
	}
	return bytes;
}

uint64_t td_swap_host_bytes(unsigned slot, uint64_t limit_bytes, bool spills)
{
	const struct td_memory_stats *t = &td_swap.totals[slot];
	uint64_t bytes, most, largest;

	pthread_mutex_lock(&td_swap.lock);
	most = td_max_u64(limit_bytes, t->fixed_bytes);
	bytes = used_bytes(slot, &largest);
	/*
	 * Whole chunks leave, so one chunk more may be needed. Bytes that could not leave still
	 * need a place.
	 */
	if (spills && t->demanded_bytes > most)
		bytes = td_max_u64(bytes, t->demanded_bytes - most + largest);
	else if (t->resident_bytes > most)
		bytes += t->resident_bytes - most + largest;
	else if (td_swap_stranded(slot))
		bytes += td_swap_stranded(slot) + largest;
	if (bytes > t->demanded_bytes)
		bytes = t->demanded_bytes;
	pthread_mutex_unlock(&td_swap.lock);
	return bytes;
}

bool td_swap_drop_idle(unsigned slot)
{
	bool any = false;

	for (struct td_range *range = td_swap.ranges; range; range = range->next) {
		for (size_t i = 0; i < range->count && range->slot == slot; i++) {
			if (!is_idle(range, &range->chunks[i]))
				continue;
			td_chunk_drop_arena(&range->chunks[i]);
			any = true;
		}
	}
	return any;
}

int td_swap_give_back(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	(void)limit_bytes;
	(void)progress;
	pthread_mutex_lock(&td_swap.lock);
	(void)td_swap_drop_idle(slot);
	pthread_mutex_unlock(&td_swap.lock);
	return 0;
}

/*
 * Returns all bytes that may have to leave, with allocations in progress. The caller holds the
 * lock.
 */
static uint64_t movable_bytes(void)
{
	uint64_t bytes = td_swap.claimed_bytes;

	for (unsigned i = 0; i < TD_SLOT_MAX; i++)
		if (td_swap.totals[i].demanded_bytes > td_swap.totals[i].fixed_bytes)
			bytes += td_swap.totals[i].demanded_bytes - td_swap.totals[i].fixed_bytes;
	return bytes;
}

bool td_swap_claim(struct td_range *range)
{
	uint64_t limit = td_arena_limit(), movable;
	bool fits;

	if (!td_settings.host_refuses)
		return true;
	pthread_mutex_lock(&td_swap.lock);
	movable = movable_bytes();
	fits = movable <= limit && range->bytes <= limit - movable;
	range->claimed = fits ? range->bytes : 0;
	td_swap.claimed_bytes += range->claimed;
	pthread_mutex_unlock(&td_swap.lock);
	return fits;
}

void td_swap_unclaim(struct td_range *range)
{
	td_swap.claimed_bytes -= range->claimed;
	range->claimed = 0;
}

/*
 * Reserves the place on the host. One thread at a time asks the daemon. Of two allocations of which
 * only one fits, the first is refused and the second succeeds.
 */
bool td_swap_reserve(struct td_range *range)
{
	uint64_t movable;
	bool granted;

	if (!range->claimed)
		return true;
	pthread_mutex_lock(&td_swap.asking);
	pthread_mutex_lock(&td_swap.lock);
	movable = movable_bytes();
	pthread_mutex_unlock(&td_swap.lock);
	granted = td_host_reserve(movable);
	if (!granted) {
		pthread_mutex_lock(&td_swap.lock);
		td_swap_unclaim(range);
		pthread_mutex_unlock(&td_swap.lock);
	}
	pthread_mutex_unlock(&td_swap.asking);
	return granted;
}

bool td_swap_charge(struct td_range *range)
{
	bool got = td_host_take_asking(range->bytes, td_arena_limit()), dropped;

	/* If the daemon grants no more, unused host memory of other chunks is freed. */
	if (!got) {
		pthread_mutex_lock(&td_swap.lock);
		dropped = td_swap_drop_idle(range->slot);
		pthread_mutex_unlock(&td_swap.lock);
		got = dropped && td_host_take_asking(range->bytes, td_arena_limit());
	}
	if (!got)
		return false;
	for (size_t i = 0; i < range->count; i++)
		range->chunks[i].charged = true;
	return true;
}
