/*
 * The group lock. A step gathers groups from the view, keeps the queue, and repairs admissions that
 * no longer fit. Then it serves the queue from its head: it admits a group that fits, closes
 * holders that may be closed for the head, and reserves the GPUs of each group that still waits.
 */
#include "policy/node/lock.h"

#include <string.h>

/* The class is above this bit of a queue key, the ticket below it. 2^56 turns are never reached. */
#define CLASS_SHIFT 56

static uint32_t hash_slot(uint32_t id)
{
	return (id * 2654435761u) >> 21 & (2 * TD_CLIENT_MAX - 1);
}

_Static_assert(TD_CLIENT_MAX == 1024, "hash_slot yields 11 bits");

/*
 * Rebuilds the index over the persistent groups. Group ids are small and few, so probing stays
 * short.
 */
static void index_groups(struct td_lock *lock)
{
	memset(lock->index, 0, sizeof(lock->index));
	for (uint32_t i = 0; i < lock->count; i++) {
		uint32_t slot = hash_slot(lock->groups[i].id);

		while (lock->index[slot])
			slot = (slot + 1) & (2 * TD_CLIENT_MAX - 1);
		lock->index[slot] = (uint16_t)(i + 1);
	}
}

static struct td_lock_group *find_group(struct td_lock *lock, uint32_t id)
{
	uint32_t slot = hash_slot(id);
	struct td_lock_group *g;

	for (; lock->index[slot]; slot = (slot + 1) & (2 * TD_CLIENT_MAX - 1)) {
		g = &lock->groups[lock->index[slot] - 1];
		if (g->id == id)
			return g;
	}
	g = &lock->groups[lock->count++];
	memset(g, 0, sizeof(*g));
	g->id = id;
	lock->index[slot] = (uint16_t)lock->count;
	return g;
}

static void begin_gather(struct td_lock_group *g, uint32_t client, uint32_t gpu_count)
{
	g->wants = g->paused = g->holding = g->draining = g->filling = false;
	g->open = g->closing = g->contended = false;
	g->turn = (struct td_turn){0};
	g->movable = g->pages_itself = true;
	g->gpus = 0;
	g->present_bytes = 0;
	g->class = TD_CLASS_BESTEFFORT;
	g->weight = 1;
	g->first_client = client;
	g->wants_since_ns = TD_NEVER;
	g->opened_ns = g->idle_since_ns = 0;
	for (uint32_t gpu = 0; gpu < gpu_count; gpu++)
		g->on[gpu].demand_bytes = g->on[gpu].left_bytes = g->on[gpu].least_bytes = 0;
}

static void gather_client(struct td_lock_group *g, const struct td_client_view *c)
{
	g->wants |= c->wants;
	g->paused |= c->paused;
	g->movable &= c->movable;
	g->pages_itself &= c->pages_itself;
	g->class = c->class < g->class ? c->class : g->class;
	g->weight = c->weight > g->weight ? c->weight : g->weight;
	g->gpus |= 1ull << c->gpu;
	g->present_bytes += c->resident_bytes;
	g->on[c->gpu].demand_bytes += c->demanded_bytes;
	g->on[c->gpu].left_bytes += td_view_left_bytes(c);
	g->on[c->gpu].least_bytes += td_view_least_bytes(c);
	if (c->wants && c->wants_since_ns < g->wants_since_ns)
		g->wants_since_ns = c->wants_since_ns;
	if (c->idle_since_ns > g->idle_since_ns)
		g->idle_since_ns = c->idle_since_ns;
	if (c->phase == TD_PHASE_CLOSED)
		return;
	g->holding = true;
	g->draining |= c->phase == TD_PHASE_DRAINING;
	g->filling |= c->phase == TD_PHASE_FILLING;
	if (c->phase_since_ns > g->opened_ns)
		g->opened_ns = c->phase_since_ns;
}

/*
 * Drops groups that left by moving the last one into their entry. The order of the queue is in the
 * tickets.
 */
static void drop_unseen(struct td_lock *lock, const struct td_view *view)
{
	for (uint32_t i = 0; i < lock->count;) {
		if (lock->groups[i].round == lock->round)
			i++;
		else
			lock->groups[i] = lock->groups[--lock->count];
	}
	index_groups(lock);
	for (uint32_t c = 0; c < view->client_count; c++)
		lock->group_of[c] =
			(uint16_t)(find_group(lock, view->clients[c].group) - lock->groups);
}

static void note_idleness(struct td_lock_group *g)
{
	if (g->wants && g->idle_from_ns && g->wants_since_ns > g->idle_from_ns) {
		g->last_idle_ns = g->wants_since_ns - g->idle_from_ns;
		td_cycle_wake(&g->cycle, g->wants_since_ns);
	}
	g->idle_from_ns = g->wants ? 0 : g->idle_since_ns;
}

static void note_filling(struct td_lock_group *g, uint64_t now_ns)
{
	if (g->resident_bytes == g->present_bytes)
		return;
	g->resident_bytes = g->present_bytes;
	g->filled_ns = now_ns;
}

static void compare_use(struct td_lock *lock, const struct td_lock_rules *rules,
	const struct td_policy_options *options, const struct td_view *view)
{
	td_use_weigh(lock, view);
	for (uint32_t i = 0; i < lock->count; i++)
		lock->groups[i].bounds = rules->turns(&lock->groups[i], view, options);
	td_use_compare(lock);
}

/*
 * Tells whether each row of the view belongs to the same group as in the last step. Then the groups
 * and group_of are right as they are: mostly nobody comes or leaves between two steps.
 */
static bool is_as_before(const struct td_lock *lock, const struct td_view *view)
{
	if (view->client_count != lock->client_count)
		return false;
	for (uint32_t c = 0; c < view->client_count; c++)
		if (lock->groups[lock->group_of[c]].id != view->clients[c].group)
			return false;
	return true;
}

/* Drops the groups that have left, makes those that are new, and finds each client's group. */
static void find_groups(struct td_lock *lock, const struct td_view *view)
{
	if (is_as_before(lock, view))
		return;
	lock->client_count = view->client_count;
	lock->round++;
	/* Leavers first, so that there is always a place for an arrival. */
	index_groups(lock);
	for (uint32_t c = 0; c < view->client_count; c++) {
		uint32_t slot = hash_slot(view->clients[c].group);

		for (; lock->index[slot]; slot = (slot + 1) & (2 * TD_CLIENT_MAX - 1))
			if (lock->groups[lock->index[slot] - 1].id == view->clients[c].group)
				lock->groups[lock->index[slot] - 1].round = lock->round;
	}
	drop_unseen(lock, view);
}

static void gather(struct td_lock *lock, const struct td_view *view, uint64_t now_ns)
{
	find_groups(lock, view);
	lock->round++;
	for (uint32_t c = 0; c < view->client_count; c++) {
		struct td_lock_group *g = &lock->groups[lock->group_of[c]];

		if (g->round != lock->round)
			begin_gather(g, c, view->gpu_count);
		g->round = lock->round;
		gather_client(g, &view->clients[c]);
	}
	for (uint32_t i = 0; i < lock->count; i++) {
		note_idleness(&lock->groups[i]);
		note_filling(&lock->groups[i], now_ns);
	}
}

static bool comes_before(const struct td_lock_group *a, const struct td_lock_group *b)
{
	if (a->wants_since_ns != b->wants_since_ns)
		return a->wants_since_ns < b->wants_since_ns;
	return a->first_client < b->first_client;
}

static bool waits(const struct td_lock_group *g)
{
	return g->wants && !g->paused && !g->holding;
}

/*
 * Gives tickets to new arrivals in the order in which they began to want the GPU. Other groups keep
 * theirs.
 */
static void hand_out_tickets(struct td_lock *lock)
{
	for (;;) {
		struct td_lock_group *first = NULL;

		for (uint32_t i = 0; i < lock->count; i++) {
			struct td_lock_group *g = &lock->groups[i];

			if (!waits(g))
				g->ticket = 0;
			else if (!g->ticket && (!first || comes_before(g, first)))
				first = g;
		}
		if (!first)
			return;
		first->ticket = ++lock->next_ticket;
	}
}

/* Returns the index behind the rising run that begins at `from`. */
static uint32_t run_end(const struct td_lock_place *places, uint32_t from, uint32_t n)
{
	while (from + 1 < n && places[from].key < places[from + 1].key)
		from++;
	return from + 1 < n ? from + 1 : n;
}

/* Merge sort of the queue by runs, which are few because little changes between steps. */
static void sort_places(struct td_lock *lock, uint32_t n)
{
	struct td_lock_place *from = lock->places, *to = lock->merged;

	while (run_end(from, 0, n) < n) {
		struct td_lock_place *swap = from;
		uint32_t out = 0;

		for (uint32_t begin = 0, middle, end; begin < n; begin = end) {
			uint32_t a = begin, b;

			middle = b = run_end(from, begin, n);
			end = middle < n ? run_end(from, middle, n) : n;
			while (a < middle || b < end)
				to[out++] = b == end || (a < middle && from[a].key < from[b].key)
						    ? from[a++]
						    : from[b++];
		}
		from = to;
		to = swap;
	}
	for (uint32_t i = 0; i < n; i++)
		lock->queue[i] = from[i].group;
}

/* Builds the queue, sorted by class if the rules say so, then by ticket. */
static void build_queue(struct td_lock *lock, const struct td_lock_rules *rules)
{
	uint32_t n = 0;

	hand_out_tickets(lock);
	for (uint32_t i = 0; i < lock->count; i++) {
		const struct td_lock_group *g = &lock->groups[i];
		uint64_t class = rules->by_class ? (uint64_t)g->class << CLASS_SHIFT : 0;

		if (g->ticket)
			lock->places[n++] = (struct td_lock_place){class | g->ticket, (uint16_t)i};
	}
	sort_places(lock, n);
	lock->queue_count = n;
}

/*
 * Returns the bytes that admission counts for a group on a GPU: none for a group that pages itself
 * while the lock is off.
 */
static uint64_t counted_bytes(
	const struct td_lock_group *g, const struct td_lock_rules *rules, uint32_t gpu)
{
	return !rules->enforce && g->pages_itself ? 0 : g->on[gpu].demand_bytes;
}

/*
 * Tells whether all holders of the GPU keep their memory there whether open or not. If they then
 * exceed the GPU, closing them helps nobody.
 */
static bool are_there_anyway(
	const struct td_lock *lock, const struct td_lock_rules *rules, uint32_t gpu)
{
	for (uint32_t i = 0; i < lock->count; i++) {
		const struct td_lock_group *g = &lock->groups[i];

		if ((g->holding || g->open) && g->gpus >> gpu & 1 &&
			counted_bytes(g, rules, gpu) > g->on[gpu].least_bytes)
			return false;
	}
	return true;
}

/*
 * Tells whether the group need not wait: all of its memory stays on the device anyway, and so does
 * that of all holders.
 */
static bool takes_nothing(const struct td_lock *lock, const struct td_lock_rules *rules,
	const struct td_lock_group *g, uint32_t gpu)
{
	return counted_bytes(g, rules, gpu) <= g->on[gpu].least_bytes &&
	       are_there_anyway(lock, rules, gpu);
}

/* Returns how many bytes closing the group frees. */
static uint64_t leaves_bytes(
	const struct td_lock_group *g, const struct td_lock_rules *rules, uint32_t gpu)
{
	uint64_t counted = counted_bytes(g, rules, gpu);

	if (!g->movable)
		return 0;
	return counted > g->on[gpu].left_bytes ? counted - g->on[gpu].left_bytes : 0;
}

static void account(struct td_lock *lock, const struct td_lock_rules *rules,
	const struct td_lock_group *g, bool add)
{
	for (uint32_t gpu = 0; gpu < TD_GPU_MAX; gpu++) {
		if (!(g->gpus >> gpu & 1))
			continue;
		lock->used_bytes[gpu] +=
			add ? counted_bytes(g, rules, gpu) : -counted_bytes(g, rules, gpu);
		lock->holders[gpu] += add ? 1u : -1u;
	}
}

static void count_holders(
	struct td_lock *lock, const struct td_lock_rules *rules, const struct td_view *view)
{
	memset(lock->used_bytes, 0, sizeof(lock->used_bytes));
	memset(lock->left_bytes, 0, sizeof(lock->left_bytes));
	memset(lock->holders, 0, sizeof(lock->holders));
	lock->reserved_gpus = lock->urgent_gpus = 0;
	lock->holding_count = 0;
	for (uint32_t i = 0; i < lock->count; i++) {
		struct td_lock_group *g = &lock->groups[i];

		for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++)
			lock->left_bytes[gpu] += g->on[gpu].left_bytes;
		/* Memory that cannot leave the device counts whether its owner holds or not. */
		for (uint32_t gpu = 0; gpu < view->gpu_count && !g->holding; gpu++)
			lock->used_bytes[gpu] += g->on[gpu].left_bytes;
		if (!g->holding)
			continue;
		account(lock, rules, g, true);
		lock->holding[lock->holding_count++] = (uint16_t)i;
		g->closing = g->draining || g->paused;
		g->open = !g->closing;
	}
}

/*
 * Tells whether g would fit beside the present holders, with `gone` counted as closed (bit per GPU,
 * bytes per GPU).
 */
static bool fits(const struct td_lock *lock, const struct td_lock_rules *rules,
	const struct td_view *view, const struct td_lock_group *g, const uint64_t *gone_bytes,
	const uint32_t *gone_holders)
{
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++) {
		uint64_t used, holders;

		if (!(g->gpus >> gpu & 1))
			continue;
		holders = lock->holders[gpu] - gone_holders[gpu];
		if (holders && rules->exclusive && rules->enforce)
			return false;
		used = lock->used_bytes[gpu] - gone_bytes[gpu] -
		       (g->holding ? 0 : g->on[gpu].left_bytes);
		/*
		 * A group that has a GPU to itself is always admitted, because waiting cannot help
		 * it.
		 */
		if (used && !takes_nothing(lock, rules, g, gpu) &&
			used + counted_bytes(g, rules, gpu) > view->gpus[gpu].capacity_bytes)
			return false;
	}
	return true;
}

/*
 * Tells whether memory that no closing moves off the device is in g's way. Then g waits until its
 * owners are done. They may wait behind g themselves, so g must not reserve a GPU meanwhile, or all
 * would wait for ever.
 */
static bool is_stuck(const struct td_lock *lock, const struct td_lock_rules *rules,
	const struct td_view *view, const struct td_lock_group *g)
{
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++) {
		uint64_t bytes =
			g->gpus >> gpu & 1 ? lock->left_bytes[gpu] - g->on[gpu].left_bytes : 0;

		if (bytes && !takes_nothing(lock, rules, g, gpu) &&
			bytes + counted_bytes(g, rules, gpu) > view->gpus[gpu].capacity_bytes)
			return true;
	}
	return false;
}

static const uint64_t no_bytes[TD_GPU_MAX];
static const uint32_t no_holders[TD_GPU_MAX];

/* Returns when a holder may be closed for the head of the queue. */
static uint64_t closable_at_ns(const struct td_lock *lock, struct td_lock_group *g,
	const struct td_lock_group *head, const struct td_lock_rules *rules,
	const struct td_policy_options *options, const struct td_view *view, uint64_t now_ns)
{
	uint64_t at = TD_NEVER, idle_at;

	/*
	 * The memory that g waits for may be the head's and immovable. Then only the head can go on
	 * and free it. This does not hold where g has room beside the head.
	 */
	if (g->filling && !head->movable && is_stuck(lock, rules, view, g))
		return 0;
	if (rules->by_class && head->class < g->class)
		return 0;

	/*
	 * The turn begins when the memory is back, since closing the group before would move memory
	 * for nothing. The wait is bounded by a quantum without progress.
	 */
	if (g->filling && !(rules->by_class && head->class > g->class))
		return (g->filled_ns > g->opened_ns ? g->filled_ns : g->opened_ns) +
		       options->quantum_ns;
	if (!(rules->by_class && head->class > g->class)) {
		g->turn = td_turn(lock, g, head, now_ns);
		at = g->opened_ns + g->turn.ns;
	}
	if (g->wants)
		return at;
	idle_at = g->idle_from_ns + rules->patience_ns(g, head, view, options);
	return idle_at < at ? idle_at : at;
}

static void close_group(struct td_lock_group *g)
{
	g->open = false;
	g->closing = true;
}

/*
 * Tells whether g gives way before `other`: the less protected, then the one that opened later,
 * then the later client.
 */
static bool gives_way(const struct td_lock_rules *rules, const struct td_lock_group *g,
	const struct td_lock_group *other)
{
	if (rules->by_class && g->class != other->class)
		return g->class > other->class;
	if (g->opened_ns != other->opened_ns)
		return g->opened_ns > other->opened_ns;
	return g->first_client > other->first_client;
}

/*
 * Tells whether the counted memory exceeds one of the group's GPUs. Such a group was admitted under
 * this count, so repair() does not close it for the same count.
 */
static bool is_crowded(
	const struct td_lock *lock, const struct td_view *view, const struct td_lock_group *g)
{
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++)
		if (g->gpus >> gpu & 1 && lock->used_bytes[gpu] > view->gpus[gpu].capacity_bytes)
			return true;
	return false;
}

/*
 * Closes groups where demand has grown beyond the GPU under its holders, or two holders came back
 * after a restart. The newest are closed until the rest fits.
 */
static void repair(
	struct td_lock *lock, const struct td_lock_rules *rules, const struct td_view *view)
{
	/* Close groups that will never be filled: the owner of the memory may wait behind them. */
	for (uint32_t i = 0; i < lock->holding_count; i++) {
		struct td_lock_group *g = &lock->groups[lock->holding[i]];

		if (g->open && g->filling && is_crowded(lock, view, g) &&
			is_stuck(lock, rules, view, g))
			close_group(g);
	}
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++) {
		uint64_t used = lock->used_bytes[gpu];
		uint32_t holders = lock->holders[gpu];

		if (holders < 2)
			continue;
		for (uint32_t i = 0; i < lock->holding_count; i++) {
			const struct td_lock_group *g = &lock->groups[lock->holding[i]];

			if (g->closing && g->gpus >> gpu & 1) {
				used -= counted_bytes(g, rules, gpu);
				holders--;
			}
		}
		while (holders > 1 && ((rules->exclusive && rules->enforce) ||
					      (used > view->gpus[gpu].capacity_bytes &&
						      !are_there_anyway(lock, rules, gpu)))) {
			struct td_lock_group *newest = NULL;

			for (uint32_t i = 0; i < lock->holding_count; i++) {
				struct td_lock_group *g = &lock->groups[lock->holding[i]];

				if (!g->open || !(g->gpus >> gpu & 1))
					continue;
				if (!newest || gives_way(rules, g, newest))
					newest = g;
			}
			if (!newest)
				break;
			close_group(newest);
			used -= counted_bytes(newest, rules, gpu);
			holders--;
		}
	}
}

static void add_gone(uint64_t *bytes, uint32_t *holders, const struct td_lock_group *g,
	const struct td_lock_rules *rules)
{
	for (uint32_t gpu = 0; gpu < TD_GPU_MAX; gpu++) {
		if (!(g->gpus >> gpu & 1))
			continue;
		bytes[gpu] += leaves_bytes(g, rules, gpu);
		holders[gpu]++;
	}
}

/*
 * Tells whether g closes before `other`: the idle, then the less protected, then the one that
 * opened first.
 */
static bool closes_first(const struct td_lock_rules *rules, const struct td_lock_group *g,
	const struct td_lock_group *other)
{
	if (g->wants != other->wants)
		return other->wants;
	if (rules->by_class && g->class != other->class)
		return g->class > other->class;
	return g->opened_ns < other->opened_ns;
}

/*
 * Marks the holders that may be closed for `head`, and counts those that are closing already as
 * gone. Returns when the next one may be closed.
 */
static uint64_t mark_closable(struct td_lock *lock, const struct td_lock_group *head,
	const struct td_lock_rules *rules, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns, uint64_t *gone_bytes, uint32_t *gone_holders)
{
	uint64_t wakeup = TD_NEVER;

	for (uint32_t i = 0; i < lock->holding_count; i++) {
		struct td_lock_group *g = &lock->groups[lock->holding[i]];
		uint64_t at;

		g->closable = g->chosen = false;
		if (!(g->gpus & head->gpus))
			continue;
		g->contended = true;
		if (g->closing) {
			add_gone(gone_bytes, gone_holders, g, rules);
			continue;
		}
		at = closable_at_ns(lock, g, head, rules, options, view, now_ns);
		g->closable = g->open && at <= now_ns;
		if (at > now_ns && at < wakeup)
			wakeup = at;
	}
	return wakeup;
}

/* Returns the holder to close first among those marked closable. */
static struct td_lock_group *choose_next(struct td_lock *lock, const struct td_lock_rules *rules)
{
	struct td_lock_group *best = NULL;

	for (uint32_t i = 0; i < lock->holding_count; i++) {
		struct td_lock_group *g = &lock->groups[lock->holding[i]];

		if (g->closable && !g->chosen && (!best || closes_first(rules, g, best)))
			best = g;
	}
	return best;
}

/*
 * Closes holders for the head of the queue, but only if the head then fits: part of the room would
 * help nobody. Returns when to step again.
 */
static uint64_t close_for(struct td_lock *lock, struct td_lock_group *head,
	const struct td_lock_rules *rules, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns)
{
	uint64_t gone_bytes[TD_GPU_MAX] = {0}, wakeup;
	uint32_t gone_holders[TD_GPU_MAX] = {0};
	bool closes = true;

	wakeup = mark_closable(lock, head, rules, options, view, now_ns, gone_bytes, gone_holders);
	while (closes && !fits(lock, rules, view, head, gone_bytes, gone_holders)) {
		struct td_lock_group *g = choose_next(lock, rules);

		closes = g != NULL;
		if (!g)
			break;
		g->chosen = true;
		add_gone(gone_bytes, gone_holders, g, rules);
	}
	head->use.displaces = false;
	for (uint32_t i = 0; i < lock->holding_count; i++) {
		struct td_lock_group *g = &lock->groups[lock->holding[i]];
		bool goes = closes && g->chosen;

		if (goes)
			close_group(g);
		/*
		 * This is not set for a holder that was to close before and keeps running because
		 * its work does not end.
		 */
		head->use.displaces |= goes || (g->draining && g->gpus & head->gpus);
	}
	return wakeup;
}

static void admit(struct td_lock *lock, const struct td_lock_rules *rules,
	const struct td_view *view, struct td_lock_group *g)
{
	g->open = true;
	td_use_begin(lock, g);
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++)
		lock->used_bytes[gpu] -= g->on[gpu].left_bytes;
	account(lock, rules, g, true);
}

uint64_t td_lock_step(struct td_lock *lock, const struct td_lock_rules *rules,
	const struct td_policy_options *options, const struct td_view *view, uint64_t now_ns)
{
	uint64_t wakeup = TD_NEVER;

	td_use_pass(lock, now_ns);
	gather(lock, view, now_ns);
	compare_use(lock, rules, options, view);
	build_queue(lock, rules);
	td_use_press(lock, rules->by_class);
	count_holders(lock, rules, view);
	repair(lock, rules, view);
	for (uint32_t q = 0; q < lock->queue_count; q++) {
		struct td_lock_group *g = &lock->groups[lock->queue[q]];

		if (!(g->gpus & lock->reserved_gpus)) {
			uint64_t at;

			if (fits(lock, rules, view, g, no_bytes, no_holders)) {
				admit(lock, rules, view, g);
				continue;
			}
			if (is_stuck(lock, rules, view, g))
				continue;
			at = close_for(lock, g, rules, options, view, now_ns);
			wakeup = at < wakeup ? at : wakeup;
		}
		lock->reserved_gpus |= g->gpus;
		if (g->class == TD_CLASS_ONLINE)
			lock->urgent_gpus |= g->gpus;
	}
	return wakeup;
}

const struct td_lock_group *td_lock_group_of(const struct td_lock *lock, uint32_t c)
{
	return &lock->groups[lock->group_of[c]];
}
