/*
 * Computes the length of a turn; turns.h has the rule. Use is counted from step to step: every
 * change makes the node step, so within an interval nobody's state changes.
 *
 * Time by weight (had_ns) is the virtual time of start-time fair queueing, but for a lock: a group
 * that comes back gets no credit for its absence, and a lag is bounded.
 */
#include <string.h>

#include "base/bounds.h"
#include "policy/node/lock.h"

/* Returns the lowest GPU of a set of bits. Most groups have one GPU. */
static uint32_t next_gpu(uint64_t gpus)
{
	return (uint32_t)__builtin_ctzll(gpus);
}

/* Scales a time from the lightest group's weight to this group's. */
static uint64_t by_weight(const struct td_lock_group *g, uint64_t ns)
{
	return ns / g->lightest * g->weight;
}

static uint64_t without_weight(const struct td_lock_group *g, uint64_t ns)
{
	return ns / g->weight * g->lightest;
}

/*
 * Counts the time since the last step as use or as idleness. Returns the GPUs that the group used.
 */
static uint64_t pass(struct td_lock_group *group, uint64_t elapsed_ns)
{
	struct td_use *use = &group->use;
	bool uses = group->holding && !group->filling && (group->wants || group->contended);

	if (uses) {
		use->used_ns += elapsed_ns;
		use->had_ns += elapsed_ns / group->weight;
	} else if (!group->wants) {
		use->used_ns = td_sub_sat(use->used_ns, elapsed_ns);
		use->displaces = false;
	}
	use->used_ns = td_min_u64(use->used_ns, by_weight(group, group->bounds.long_ns));
	use->wanted = group->wants;
	return uses ? group->gpus : 0;
}

void td_use_pass(struct td_lock *lock, uint64_t now_ns)
{
	uint64_t elapsed_ns = lock->stepped_ns ? td_sub_sat(now_ns, lock->stepped_ns) : 0;
	uint64_t used_gpus = 0;

	lock->stepped_ns = now_ns;
	for (uint32_t i = 0; i < lock->count; i++)
		used_gpus |= pass(&lock->groups[i], elapsed_ns);
	for (uint32_t gpu = 0; gpu < TD_GPU_MAX; gpu++)
		if (used_gpus >> gpu & 1)
			lock->owed_ns[gpu] = td_sub_sat(lock->owed_ns[gpu], elapsed_ns);
}

void td_use_weigh(struct td_lock *lock, const struct td_view *view)
{
	uint32_t lightest[TD_GPU_MAX], heaviest[TD_GPU_MAX] = {0};

	for (uint32_t gpu = 0; gpu < TD_GPU_MAX; gpu++)
		lightest[gpu] = UINT32_MAX;
	for (uint32_t c = 0; c < view->client_count; c++) {
		uint32_t weight = view->clients[c].weight ? view->clients[c].weight : 1;
		uint32_t gpu = view->clients[c].gpu;

		lightest[gpu] = (uint32_t)td_min_u64(lightest[gpu], weight);
		heaviest[gpu] = (uint32_t)td_max_u64(heaviest[gpu], weight);
	}
	for (uint32_t i = 0; i < lock->count; i++) {
		struct td_lock_group *g = &lock->groups[i];

		g->lightest = UINT32_MAX;
		g->heaviest = 1;
		for (uint64_t left = g->gpus; left; left &= left - 1) {
			uint32_t gpu = next_gpu(left);

			g->lightest = (uint32_t)td_min_u64(g->lightest, lightest[gpu]);
			g->heaviest = (uint32_t)td_max_u64(g->heaviest, heaviest[gpu]);
		}
	}
}

/* Writes for each GPU the greatest had_ns of the groups that want it. */
static void find_first(const struct td_lock *lock, uint64_t *ret_first_ns)
{
	memset(ret_first_ns, 0, TD_GPU_MAX * sizeof(*ret_first_ns));
	for (uint32_t i = 0; i < lock->count; i++) {
		const struct td_lock_group *g = &lock->groups[i];

		for (uint64_t left = g->wants ? g->gpus : 0; left; left &= left - 1)
			ret_first_ns[next_gpu(left)] =
				td_max_u64(ret_first_ns[next_gpu(left)], g->use.had_ns);
	}
}

/*
 * Gives a group that begins to want a GPU the greatest had_ns there, because it has missed nothing
 * that it wanted. Others are at most a long turn behind, because the times of groups without a
 * common GPU drift apart, and a group on both GPUs must not pay for that.
 */
void td_use_compare(struct td_lock *lock)
{
	uint64_t first_ns[TD_GPU_MAX];

	find_first(lock, first_ns);
	for (uint32_t i = 0; i < lock->count; i++) {
		struct td_lock_group *g = &lock->groups[i];
		bool comes = !g->use.wanted && !g->holding;
		uint64_t behind_ns = comes ? 0 : g->bounds.long_ns / g->lightest;

		for (uint64_t left = g->wants ? g->gpus : 0; left; left &= left - 1)
			g->use.had_ns = td_max_u64(
				g->use.had_ns, td_sub_sat(first_ns[next_gpu(left)], behind_ns));
	}
}

/*
 * Goes through the queue from its end and sets each group's pressing_ns. A waiting group counts for
 * each group before it with a GPU in common, and through these on their other GPUs.
 */
void td_use_press(struct td_lock *lock, bool by_class)
{
	uint64_t used_ns[TD_GPU_MAX] = {0};

	for (uint32_t q = lock->queue_count; q-- > 0;) {
		struct td_lock_group *g = &lock->groups[lock->queue[q]];
		bool others_follow =
			q + 1 < lock->queue_count &&
			(!by_class || lock->groups[lock->queue[q + 1]].class == g->class);

		if (!others_follow)
			memset(used_ns, 0xff, sizeof(used_ns)); /* UINT64_MAX: no group */
		g->pressing_ns = without_weight(g, g->use.used_ns);
		for (uint64_t left = g->gpus; left; left &= left - 1)
			g->pressing_ns = td_min_u64(g->pressing_ns, used_ns[next_gpu(left)]);
		for (uint64_t left = g->gpus; left; left &= left - 1)
			used_ns[next_gpu(left)] = g->pressing_ns;
	}
}

/* Tells whether admitting the group moves memory, its own or that of others. */
static bool is_hand_over(const struct td_lock_group *g)
{
	uint64_t demand_bytes = 0;

	for (uint64_t left = g->gpus; left; left &= left - 1)
		demand_bytes += g->on[next_gpu(left)].demand_bytes;
	return g->use.displaces || g->resident_bytes < demand_bytes;
}

void td_use_begin(struct td_lock *lock, struct td_lock_group *group)
{
	struct td_use *use = &group->use;

	for (uint64_t left = is_hand_over(group) ? group->gpus : 0; left; left &= left - 1) {
		uint64_t *owed_ns = &lock->owed_ns[next_gpu(left)];

		*owed_ns = td_min_u64(*owed_ns + group->bounds.short_ns, group->bounds.most_ns);
	}
	use->displaces = false;
	use->used_before_ns = without_weight(group, use->used_ns);
	use->had_before_ns = use->had_ns;
}

/* Returns the length of the turn that pays the debt on the group's GPUs. */
static uint64_t paid_ns(const struct td_lock *lock, const struct td_lock_group *g, uint64_t now_ns)
{
	uint64_t owed_ns = 0;

	for (uint64_t left = g->gpus; left; left &= left - 1)
		owed_ns = td_max_u64(owed_ns, lock->owed_ns[next_gpu(left)]);
	return owed_ns ? td_sub_sat(now_ns, g->opened_ns) + owed_ns : 0;
}

struct td_turn td_turn(const struct td_lock *lock, const struct td_lock_group *holder,
	const struct td_lock_group *head, uint64_t now_ns)
{
	const struct td_turn_bounds *bounds = &holder->bounds;
	uint64_t used_ns = td_min_u64(holder->use.used_before_ns, head->pressing_ns);
	uint64_t ns = td_min_u64(used_ns, bounds->long_ns), short_ns;
	uint64_t ahead_ns =
		td_sub_sat(holder->use.had_before_ns, head->use.had_ns) * holder->lightest;
	struct td_turn turn = {.reason = TD_TURN_GROWS};

	if (bounds->fixed)
		return (struct td_turn){bounds->short_ns, TD_TURN_FIXED};
	if (ns <= bounds->short_ns)
		turn.reason = head->pressing_ns > ns ? TD_TURN_NEW : TD_TURN_SHORT;
	else if (ahead_ns > bounds->short_ns)
		turn.reason = TD_TURN_AHEAD;
	else if (ns == bounds->long_ns)
		turn.reason = TD_TURN_LONG;
	/*
	 * Only a holder that has not had more time than others pays the debt. One that has had more
	 * comes back soon anyway.
	 */
	short_ns = by_weight(holder, bounds->short_ns);
	if (ahead_ns <= bounds->short_ns / 8)
		short_ns = td_max_u64(short_ns, paid_ns(lock, holder, now_ns));
	turn.ns = td_min_u64(short_ns, bounds->most_ns);
	if (td_sub_sat(ns, ahead_ns) > bounds->short_ns)
		turn.ns = td_max_u64(turn.ns, by_weight(holder, ns - ahead_ns));
	return turn;
}
