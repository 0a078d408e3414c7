/* Predicts the end of a pause; see pauses.h. */
#include "policy/node/beside/pauses.h"

#include <stdbool.h>
#include <string.h>

#define GAP_SHARE    16
#define BEYOND_SHARE 4
/* The end of a pause is reported late by up to this much. */
#define LATE_NS 100000u

void td_pauses_begin(struct td_pauses *pauses, uint64_t now_ns)
{
	if (!pauses->since_ns)
		pauses->since_ns = now_ns;
}

/* Returns the index of the first recorded length above ns; `count` if there is none. */
static uint32_t first_longer(const struct td_pauses *pauses, uint64_t ns)
{
	uint32_t i = 0;

	while (i < pauses->count && pauses->sorted_ns[i] <= ns)
		i++;
	return i;
}

static void forget_oldest(struct td_pauses *pauses)
{
	uint64_t *sorted = pauses->sorted_ns;
	uint32_t at = first_longer(pauses, pauses->in_order_ns[pauses->oldest]) - 1;

	pauses->count--;
	memmove(&sorted[at], &sorted[at + 1], (pauses->count - at) * sizeof(*sorted));
}

static void learn(struct td_pauses *pauses, uint64_t ns)
{
	uint64_t *sorted = pauses->sorted_ns;
	uint32_t at;

	if (pauses->count == TD_PAUSES_MAX)
		forget_oldest(pauses);
	at = first_longer(pauses, ns);
	memmove(&sorted[at + 1], &sorted[at], (pauses->count - at) * sizeof(*sorted));
	sorted[at] = ns;
	pauses->in_order_ns[pauses->oldest] = ns;
	pauses->oldest = (pauses->oldest + 1) % TD_PAUSES_MAX;
	pauses->count++;
}

void td_pauses_end(struct td_pauses *pauses, uint64_t now_ns)
{
	if (pauses->since_ns)
		learn(pauses, now_ns > pauses->since_ns ? now_ns - pauses->since_ns : 0);
	pauses->since_ns = 0;
}

static bool is_gap(uint64_t from_ns, uint64_t to_ns, uint64_t grain_ns)
{
	uint64_t ns = to_ns - from_ns;

	return ns && ns >= grain_ns && ns >= to_ns / GAP_SHARE;
}

/* Adds a margin, since the next pause of a kind may be a little longer than all before. */
static uint64_t with_margin(uint64_t ns)
{
	return ns + ns / GAP_SHARE;
}

static uint64_t from_now(const struct td_pauses *pauses, uint64_t ns)
{
	return ns < UINT64_MAX - pauses->since_ns ? pauses->since_ns + ns : UINT64_MAX;
}

uint64_t td_pauses_until_ns(
	const struct td_pauses *pauses, uint64_t grain_ns, uint64_t now_ns, uint64_t *ret_again_ns)
{
	const uint64_t *sorted = pauses->sorted_ns;
	uint64_t longest = pauses->count ? sorted[pauses->count - 1] : 0,
		 age = now_ns > pauses->since_ns ? now_ns - pauses->since_ns : 0,
		 beyond = longest + longest / BEYOND_SHARE;
	uint32_t next = first_longer(pauses, age);

	*ret_again_ns = UINT64_MAX;
	if (next == pauses->count && age >= beyond)
		return UINT64_MAX;
	if (next && next < pauses->count && age < with_margin(sorted[next - 1]) &&
		sorted[next] > with_margin(sorted[next - 1])) {
		*ret_again_ns = from_now(pauses, with_margin(sorted[next - 1]));
		return pauses->since_ns;
	}
	if (next < pauses->count && is_gap(age, sorted[next], grain_ns)) {
		*ret_again_ns = from_now(pauses, sorted[next]);
		return *ret_again_ns - LATE_NS;
	}
	while (next + 1 < pauses->count && !is_gap(sorted[next], sorted[next + 1], grain_ns))
		next++;
	*ret_again_ns = from_now(pauses, next + 1 < pauses->count ? sorted[next] : beyond);
	return pauses->since_ns;
}
