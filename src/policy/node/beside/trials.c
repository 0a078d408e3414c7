/* Lets one group at a time try new work; see trials.h. */
#include "policy/node/beside/trials.h"

/* A group with much new work may try it for this long while others wait. */
#define TURN_NS 100000000ull
/*
 * After a trial of LONG_NS or more nothing is tried for REST_TIMES as long, so that a step meets
 * one long trial at most.
 */
#define LONG_NS    20000000ull
#define REST_TIMES 4
/*
 * Clients do not report at once that new work comes or has ended. So the state is read every
 * SEEK_NS, and every LOOK_NS while a program waits.
 */
#define SEEK_NS 20000000ull
#define LOOK_NS 5000000ull

static bool may_be_held(
	const struct td_view *view, const struct td_plan *plan, uint32_t gpu, uint32_t c)
{
	return view->clients[c].gpu == gpu && view->clients[c].class == TD_CLASS_BESTEFFORT &&
	       plan->grants[c].gate != TD_GATE_CLOSED && view->clients[c].fresh & TD_FRESH_TOLD;
}

/* The reports of all clients of a group together. */
struct said {
	uint32_t fresh; /* TD_FRESH_* bits; 0: no new work */
	uint32_t tries;
};

static struct said said_by(
	const struct td_view *view, const struct td_plan *plan, uint32_t gpu, uint32_t group)
{
	struct said said = {0};

	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];
		/* A client without work has nothing in flight, whatever it reported last. */
		uint32_t gone = client->wants ? 0 : TD_FRESH_IN_FLIGHT;

		if (client->group != group || !may_be_held(view, plan, gpu, c))
			continue;
		said.fresh |= client->fresh & TD_FRESH_FLAGS & ~gone;
		said.tries += client->tries;
	}
	return said;
}

struct around {
	bool guaranteed, at_work;
	uint64_t progress;
	uint32_t groups; /* number of groups, counted up to two */
};

static struct around around_gpu(
	const struct td_view *view, const struct td_plan *plan, uint32_t gpu)
{
	struct around here = {0};
	uint32_t first = 0;

	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];

		if (client->gpu == gpu && client->class == TD_CLASS_GUARANTEED &&
			plan->grants[c].gate != TD_GATE_CLOSED) {
			here.guaranteed = true;
			here.at_work |= client->wants;
			here.progress += client->steps;
		}
		if (!may_be_held(view, plan, gpu, c))
			continue;
		if (!here.groups)
			first = client->group;
		if (!here.groups || client->group != first)
			here.groups += here.groups < 2;
	}
	return here;
}

/*
 * Returns the group of the next client that has new work waiting, after the present group; the
 * present group if no other has.
 */
static uint32_t next_group(const struct td_trials *trials, const struct td_view *view,
	const struct td_plan *plan, uint32_t gpu)
{
	uint32_t first = 0;

	for (uint32_t c = 0; c < view->client_count; c++)
		if (view->clients[c].group == trials->group)
			first = c + 1;
	for (uint32_t i = 0; i < view->client_count; i++) {
		uint32_t c = (first + i) % view->client_count;

		if (may_be_held(view, plan, gpu, c) && view->clients[c].fresh & TD_FRESH_WAITS &&
			view->clients[c].group != trials->group)
			return view->clients[c].group;
	}
	return trials->group;
}

/*
 * Notes whether the present group's new work was submitted or has ended. Returns true if one piece
 * ended and another is in flight.
 */
static bool note_flight(struct td_trials *trials, const struct said *said,
	const struct around *here, uint64_t now_ns)
{
	bool in_flight = said->fresh & TD_FRESH_IN_FLIGHT, was = trials->flight_ns,
	     same = was && in_flight && said->tries == trials->tries;
	uint64_t took_ns = was ? now_ns - trials->flight_ns : 0;

	trials->tries = said->tries;
	if (same)
		return false;
	if (took_ns >= LONG_NS && here->at_work) {
		trials->progress = here->progress;
		trials->rest_ns =
			now_ns + (took_ns < TD_TRIALS_MOST_NS / REST_TIMES ? REST_TIMES * took_ns
									   : TD_TRIALS_MOST_NS);
	}
	trials->flight_ns = in_flight ? now_ns : 0;
	return was && in_flight;
}

static bool is_over(
	const struct td_trials *trials, const struct said *said, bool is_other, uint64_t now_ns)
{
	bool had_all = now_ns - trials->since_ns >= TURN_NS;

	if (said->fresh & TD_FRESH_IN_FLIGHT)
		return (is_other && had_all) || now_ns - trials->flight_ns >= TD_TRIALS_MOST_NS;
	return !(said->fresh & TD_FRESH_WAITS) || had_all;
}

static void pass_on(struct td_trials *trials, const struct td_view *view,
	const struct td_plan *plan, uint32_t gpu, uint64_t now_ns)
{
	uint32_t next = next_group(trials, view, plan, gpu);

	if (next == trials->group)
		return;
	trials->group = next;
	trials->since_ns = now_ns;
	trials->flight_ns = 0;
	trials->tries = 0;
}

/*
 * Sets which clients are held, and which have to report at once when none of their new work is in
 * flight.
 */
static bool set_holds(const struct td_trials *trials, const struct td_view *view, uint32_t gpu,
	struct td_plan *plan)
{
	bool waits = false;

	for (uint32_t c = 0; c < view->client_count; c++) {
		if (!may_be_held(view, plan, gpu, c))
			continue;
		plan->grants[c].hold_new =
			trials->rest_ns || view->clients[c].group != trials->group;
		waits |= plan->grants[c].hold_new && view->clients[c].fresh & TD_FRESH_WAITS;
	}
	for (uint32_t c = 0; waits && c < view->client_count; c++)
		if (may_be_held(view, plan, gpu, c) && view->clients[c].group == trials->group &&
			view->clients[c].fresh & TD_FRESH_IN_FLIGHT)
			plan->grants[c].others_wait = true;
	return waits;
}

void td_trials_step(struct td_trials *trials, const struct td_view *view, uint32_t gpu,
	uint64_t now_ns, struct td_plan *plan)
{
	struct around here = around_gpu(view, plan, gpu);
	struct said said;
	uint64_t again;
	bool is_other;

	trials->pauses += trials->at_work && !here.at_work;
	trials->at_work = here.at_work;
	if (!here.guaranteed || here.groups < 2) {
		trials->group = 0;
		trials->flight_ns = trials->rest_ns = 0;
		return;
	}
	here.progress += trials->pauses;
	said = said_by(view, plan, gpu, trials->group);
	is_other = note_flight(trials, &said, &here, now_ns);
	/* The turn's time counts only while the group has something to try. */
	if (!(said.fresh & (TD_FRESH_WAITS | TD_FRESH_IN_FLIGHT)))
		trials->since_ns = now_ns;
	if (trials->rest_ns && (here.progress != trials->progress || now_ns >= trials->rest_ns))
		trials->rest_ns = 0;
	if (is_over(trials, &said, is_other, now_ns))
		pass_on(trials, view, plan, gpu, now_ns);
	again = now_ns + (set_holds(trials, view, gpu, plan) ? LOOK_NS : SEEK_NS);
	if (again < plan->next_wakeup_ns)
		plan->next_wakeup_ns = again;
}
