/* Gives a GPU to one program alone, for a moment; see alone.h. */
#include "policy/node/alone.h"

#include <stddef.h>

#include "base/bounds.h"

/* How often the state is looked at while a moment goes on. */
#define LOOK_NS 1000000ull
/* How often the daemon looks for programs that had to guess. */
#define SEEK_NS 20000000ull
/* The pause after a moment is at least this many times as long as the moment. */
#define PAUSE_SHARE 4
/* After this many failures in a row of a program to do its part, its attempts get rarer. */
#define TRIALS 4

static uint32_t sum_of(const struct td_alone_tenant *tenants, uint32_t count)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += tenants[i].id * 2654435761u;
	return sum;
}

/*
 * Returns what is known of a program and makes a new entry if necessary. Never returns NULL,
 * because there are as many entries as tenants.
 */
static struct td_alone_known *known(
	struct td_alone *alone, uint32_t id, const struct td_alone_tenant *tenants, uint32_t count)
{
	struct td_alone_known *spare = NULL;

	for (uint32_t i = 0; i < TD_ALONE_TENANTS_MAX; i++) {
		struct td_alone_known *place = &alone->known[i];
		bool there = false;

		if (place->id == id)
			return place;
		for (uint32_t j = 0; j < count; j++)
			there |= tenants[j].id == place->id;
		/* Take a free entry, else the oldest of a program that is gone. */
		if (!there && (!spare || place->id < spare->id))
			spare = place;
	}
	*spare = (struct td_alone_known){.id = id};
	return spare;
}

static bool is_in_vain(const struct td_alone_trials *trials)
{
	return trials->failed >= TRIALS;
}

static bool is_measurable(struct td_alone *alone, const struct td_alone_tenant *who,
	const struct td_alone_tenant *tenants, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct td_alone_known *k = known(alone, tenants[i].id, tenants, count);

		if (is_in_vain(&tenants[i] == who ? &k->measure : &k->dry))
			return false;
	}
	return true;
}

/*
 * Returns when the next attempt is worthwhile, after failures of the others to run dry or of this
 * program to be measured. 0: at any time.
 */
static uint64_t worth_at_ns(struct td_alone *alone, const struct td_alone_tenant *who,
	const struct td_alone_tenant *tenants, uint32_t count)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct td_alone_known *k = known(alone, tenants[i].id, tenants, count);

		at = td_max_u64(at, &tenants[i] == who ? k->measure.again_ns : k->dry.again_ns);
	}
	return at;
}

/*
 * Returns the first program behind the last one served that has guessed again since its own turn;
 * NULL: there is none.
 */
static struct td_alone_tenant *next_guesser(
	struct td_alone *alone, struct td_alone_tenant *tenants, uint32_t count, uint64_t now_ns)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < count; i++)
		if (tenants[i].id == alone->who)
			first = i + 1;
	for (uint32_t i = 0; i < count; i++) {
		struct td_alone_tenant *tenant = &tenants[(first + i) % count];

		if (known(alone, tenant->id, tenants, count)->guesses != tenant->guesses &&
			now_ns >= worth_at_ns(alone, tenant, tenants, count))
			return tenant;
	}
	return NULL;
}

static struct td_alone_tenant *tenant_of(
	struct td_alone_tenant *tenants, uint32_t count, uint32_t id)
{
	for (uint32_t i = 0; i < count; i++)
		if (tenants[i].id == id)
			return &tenants[i];
	return NULL;
}

static void end_moment(struct td_alone *alone, uint64_t now_ns)
{
	alone->phase = TD_ALONE_QUIET;
	alone->rest_ns = now_ns + PAUSE_SHARE * (now_ns - alone->since_ns);
	alone->next_ns = td_max_u64(now_ns + alone->pause_ns, alone->rest_ns);
	alone->pause_ns = td_min_u64(2 * alone->pause_ns, TD_ALONE_PAUSE_MAX_NS);
}

static bool all_dry(
	const struct td_alone *alone, const struct td_alone_tenant *tenants, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (tenants[i].id != alone->who && tenants[i].dry != alone->number)
			return false;
	return true;
}

static void begin_moment(
	struct td_alone *alone, struct td_alone_tenant *who, uint32_t *last_number, uint64_t now_ns)
{
	*last_number = *last_number == UINT32_MAX ? 1 : *last_number + 1;
	alone->phase = TD_ALONE_HOLDING;
	alone->who = who->id;
	alone->since_ns = now_ns;
	alone->number = *last_number;
}

static void note_trial(struct td_alone_trials *trials, bool success, uint64_t now_ns)
{
	if (success) {
		*trials = (struct td_alone_trials){0};
		return;
	}
	trials->failed += !is_in_vain(trials);
	if (!is_in_vain(trials))
		return;
	trials->pause_ns = td_min_u64(
		2 * td_max_u64(trials->pause_ns, TD_ALONE_PAUSE_MAX_NS), TD_ALONE_IN_VAIN_MAX_NS);
	trials->again_ns = now_ns + trials->pause_ns;
}

/*
 * Notes which programs have done their part. `too_long`: the others whose turn it was have failed.
 */
static void note_trials(struct td_alone *alone, struct td_alone_tenant *tenants, uint32_t count,
	bool too_long, uint64_t now_ns)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct td_alone_tenant *t = &tenants[i];
		struct td_alone_known *k = known(alone, t->id, tenants, count);

		if (t->id == alone->who) {
			if (t->measured == alone->number)
				note_trial(&k->measure, true, now_ns);
			else if (too_long && alone->phase == TD_ALONE_ALONE)
				note_trial(&k->measure, false, now_ns);
		} else if (t->dry == alone->number) {
			note_trial(&k->dry, true, now_ns);
		} else if (too_long) {
			note_trial(&k->dry, false, now_ns);
		}
	}
}

/* Tells whether the moment ends: the program was measured, or has gone, or takes too long. */
static bool is_over(
	struct td_alone *alone, struct td_alone_tenant *tenants, uint32_t count, uint64_t now_ns)
{
	struct td_alone_tenant *who = tenant_of(tenants, count, alone->who);
	bool too_long = now_ns - alone->since_ns >= TD_ALONE_MOST_NS, measured;

	if (!who || count < 2)
		return true;
	measured = who->measured == alone->number;
	if (!measured && !too_long)
		return false;
	note_trials(alone, tenants, count, too_long && !measured, now_ns);
	if (measured)
		known(alone, who->id, tenants, count)->guesses = who->guesses;
	return true;
}

static void advance_phase(struct td_alone *alone, struct td_alone_tenant *tenants, uint32_t count,
	uint32_t *last_number, uint64_t now_ns)
{
	struct td_alone_tenant *who;

	switch (alone->phase) {
	case TD_ALONE_QUIET:
		who = now_ns >= alone->next_ns ? next_guesser(alone, tenants, count, now_ns) : NULL;
		if (who)
			begin_moment(alone, who, last_number, now_ns);
		return;
	case TD_ALONE_HOLDING:
		if (is_over(alone, tenants, count, now_ns))
			end_moment(alone, now_ns);
		else if (all_dry(alone, tenants, count))
			alone->phase = TD_ALONE_ALONE;
		return;
	case TD_ALONE_ALONE:
		if (is_over(alone, tenants, count, now_ns))
			end_moment(alone, now_ns);
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

/* Tells each program whether it is held or has the GPU. */
static void tell_tenants(struct td_alone *alone, struct td_alone_tenant *tenants, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct td_alone_tenant *t = &tenants[i];

		t->ret_measurable = is_measurable(alone, t, tenants, count);
		if (alone->phase == TD_ALONE_QUIET)
			continue;
		if (t->id != alone->who)
			t->ret_hold = alone->number;
		else if (alone->phase == TD_ALONE_ALONE)
			t->ret_alone = alone->number;
	}
}

uint64_t td_alone_step(struct td_alone *alone, struct td_alone_tenant *tenants, uint32_t count,
	uint32_t *last_number, uint64_t now_ns)
{
	for (uint32_t i = 0; i < count; i++) {
		tenants[i].ret_alone = tenants[i].ret_hold = 0;
		tenants[i].ret_measurable = false;
	}
	note_tenants(alone, tenants, count);
	if (count >= 2 || alone->phase != TD_ALONE_QUIET)
		advance_phase(alone, tenants, count, last_number, now_ns);
	if (count < 2)
		return UINT64_MAX;
	tell_tenants(alone, tenants, count);
	return alone->phase == TD_ALONE_QUIET ? td_max_u64(alone->next_ns, now_ns + SEEK_NS)
					      : now_ns + LOOK_NS;
}
