/* A GPU for one alone, for a moment; see alone.h. */
#include "policy/alone.h"

#include <stddef.h>

/* While others run dry and one is measured, it is looked so often. */
#define LOOK_NS 1000000ull
/* And for who has guessed. */
#define SEEK_NS 20000000ull
/* A pause is at least so many times as long as the moment before it. */
#define PAUSE_SHARE 4

static uint64_t max_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t min_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint32_t sum_of(const struct td_alone_tenant *tenants, uint32_t count)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += tenants[i].id * 2654435761u;
	return sum;
}

/* What it had guessed when it was served last; its place, or a new one. NULL never: there are as many places as tenants. */
static uint32_t *served(
	struct td_alone *alone, uint32_t id, const struct td_alone_tenant *tenants, uint32_t count)
{
	uint32_t spare = 0;

	for (uint32_t i = 0; i < TD_ALONE_TENANTS_MAX; i++) {
		bool there = false;

		if (alone->served[i].id == id)
			return &alone->served[i].guesses;
		for (uint32_t j = 0; j < count; j++)
			there |= tenants[j].id == alone->served[i].id;
		if (!there)
			spare = i;
	}
	alone->served[spare].id = id;
	alone->served[spare].guesses = 0;
	return &alone->served[spare].guesses;
}

/* The first behind the one who was served last that has guessed since it was. */
static struct td_alone_tenant *choose(
	struct td_alone *alone, struct td_alone_tenant *tenants, uint32_t count)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < count; i++)
		if (tenants[i].id == alone->who)
			first = i + 1;
	for (uint32_t i = 0; i < count; i++) {
		struct td_alone_tenant *tenant = &tenants[(first + i) % count];

		if (*served(alone, tenant->id, tenants, count) != tenant->guesses)
			return tenant;
	}
	return NULL;
}

static struct td_alone_tenant *find(struct td_alone_tenant *tenants, uint32_t count, uint32_t id)
{
	for (uint32_t i = 0; i < count; i++)
		if (tenants[i].id == id)
			return &tenants[i];
	return NULL;
}

static void end(struct td_alone *alone, uint64_t now_ns)
{
	alone->phase = TD_ALONE_QUIET;
	alone->rest_ns = now_ns + PAUSE_SHARE * (now_ns - alone->since_ns);
	alone->next_ns = max_ns(now_ns + alone->pause_ns, alone->rest_ns);
	alone->pause_ns = min_ns(2 * alone->pause_ns, TD_ALONE_PAUSE_MAX_NS);
}

static bool all_dry(
	const struct td_alone *alone, const struct td_alone_tenant *tenants, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (tenants[i].id != alone->who && tenants[i].dry != alone->number)
			return false;
	return true;
}

static void begin(struct td_alone *alone, struct td_alone_tenant *who, uint64_t now_ns)
{
	alone->phase = TD_ALONE_HOLDING;
	alone->who = who->id;
	alone->since_ns = now_ns;
	alone->number = alone->number == UINT32_MAX ? 1 : alone->number + 1;
}

/* Who was to be measured is; or is gone, or it takes too long. */
static bool is_over(
	struct td_alone *alone, struct td_alone_tenant *tenants, uint32_t count, uint64_t now_ns)
{
	struct td_alone_tenant *who = find(tenants, count, alone->who);

	if (!who || count < 2 || now_ns - alone->since_ns >= TD_ALONE_MOST_NS)
		return true;
	if (who->measured != alone->number)
		return false;
	*served(alone, who->id, tenants, count) = who->guesses;
	return true;
}

static void look(
	struct td_alone *alone, struct td_alone_tenant *tenants, uint32_t count, uint64_t now_ns)
{
	struct td_alone_tenant *who;

	switch (alone->phase) {
	case TD_ALONE_QUIET:
		who = now_ns >= alone->next_ns ? choose(alone, tenants, count) : NULL;
		if (who)
			begin(alone, who, now_ns);
		return;
	case TD_ALONE_HOLDING:
		if (is_over(alone, tenants, count, now_ns))
			end(alone, now_ns);
		else if (all_dry(alone, tenants, count))
			alone->phase = TD_ALONE_ALONE;
		return;
	case TD_ALONE_ALONE:
		if (is_over(alone, tenants, count, now_ns))
			end(alone, now_ns);
		return;
	case TD_ALONE_PHASE_N: return;
	}
}

static void note_tenants(
	struct td_alone *alone, const struct td_alone_tenant *tenants, uint32_t count)
{
	uint32_t sum = sum_of(tenants, count);

	if (sum == alone->tenants)
		return;
	alone->tenants = sum;
	alone->pause_ns = TD_ALONE_PAUSE_MIN_NS;
	if (alone->phase == TD_ALONE_QUIET)
		alone->next_ns = alone->rest_ns;
}

uint64_t td_alone_step(
	struct td_alone *alone, struct td_alone_tenant *tenants, uint32_t count, uint64_t now_ns)
{
	for (uint32_t i = 0; i < count; i++)
		tenants[i].ret_alone = tenants[i].ret_hold = 0;
	note_tenants(alone, tenants, count);
	if (count >= 2 || alone->phase != TD_ALONE_QUIET)
		look(alone, tenants, count, now_ns);
	if (count < 2)
		return UINT64_MAX;
	if (alone->phase == TD_ALONE_QUIET)
		return max_ns(alone->next_ns, now_ns + SEEK_NS);
	for (uint32_t i = 0; i < count; i++) {
		if (tenants[i].id != alone->who)
			tenants[i].ret_hold = alone->number;
		else if (alone->phase == TD_ALONE_ALONE)
			tenants[i].ret_alone = alone->number;
	}
	return now_ns + LOOK_NS;
}
