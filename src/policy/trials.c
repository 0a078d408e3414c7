/* New work, one group at a time; see trials.h. */
#include "policy/trials.h"

/* One that has much that is new may try it for so long while others wait. */
#define TURN_NS 100000000ull
/* What is in flight for so long is not tried twice in a step, as far as one ends within so many times of that. */
#define LONG_NS    20000000ull
#define REST_TIMES 4
/* Nobody tells when something new comes, or has ended: it is looked so often, and while somebody waits. */
#define SEEK_NS 20000000ull
#define LOOK_NS 5000000ull

static bool may_be_held(
	const struct td_view *view, const struct td_plan *plan, uint32_t gpu, uint32_t c)
{
	return view->clients[c].gpu == gpu && view->clients[c].class == TD_CLASS_BESTEFFORT &&
	       plan->grants[c].gate != TD_GATE_CLOSED && view->clients[c].fresh & TD_FRESH_TOLD;
}

/* What the clients of a group say together; 0: there are none. */
static uint32_t fresh_of(
	const struct td_view *view, const struct td_plan *plan, uint32_t gpu, uint32_t group)
{
	uint32_t fresh = 0;

	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];

		if (client->group != group || !may_be_held(view, plan, gpu, c))
			continue;
		fresh |= client->fresh;
		/* It has looked, and nothing of it is under way. */
		if (!client->wants)
			fresh &= ~TD_FRESH_IN_FLIGHT;
	}
	return fresh;
}

struct around {
	bool guaranteed, at_work;
	uint64_t progress;
	uint32_t groups; /* up to two */
};

static struct around look(const struct td_view *view, const struct td_plan *plan, uint32_t gpu)
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

/* The group of the next client behind those of the present one of which something new waits; its own, if no other does. */
static uint32_t choose(const struct td_trials *trials, const struct td_view *view,
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

/* Whether what is new of the present group has come or gone. */
static void note_flight(
	struct td_trials *trials, uint32_t fresh, const struct around *here, uint64_t now_ns)
{
	uint64_t took_ns = trials->flight_ns ? now_ns - trials->flight_ns : 0;

	if (fresh & TD_FRESH_IN_FLIGHT) {
		if (!trials->flight_ns)
			trials->flight_ns = now_ns;
		return;
	}
	if (took_ns >= LONG_NS && here->at_work) {
		trials->progress = here->progress;
		trials->rest_ns =
			now_ns + (took_ns < TD_TRIALS_MOST_NS / REST_TIMES ? REST_TIMES * took_ns
									   : TD_TRIALS_MOST_NS);
	}
	trials->flight_ns = 0;
}

static bool is_over(const struct td_trials *trials, uint32_t fresh, uint64_t now_ns)
{
	uint64_t lasts = now_ns - trials->since_ns;

	if (!fresh || lasts >= TD_TRIALS_MOST_NS)
		return true;
	if (fresh & TD_FRESH_IN_FLIGHT)
		return false;
	return !(fresh & TD_FRESH_WAITS) || lasts >= TURN_NS;
}

static void pass_on(struct td_trials *trials, const struct td_view *view,
	const struct td_plan *plan, uint32_t gpu, uint64_t now_ns)
{
	uint32_t next = choose(trials, view, plan, gpu);

	if (next == trials->group)
		return;
	trials->group = next;
	trials->since_ns = now_ns;
	trials->flight_ns = 0;
}

/* Who is held, and who is to say at once that it has nothing under way. */
static bool tell(const struct td_trials *trials, const struct td_view *view, uint32_t gpu,
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
	struct around here = look(view, plan, gpu);
	uint64_t again;
	uint32_t fresh;

	trials->pauses += trials->at_work && !here.at_work;
	trials->at_work = here.at_work;
	if (!here.guaranteed || here.groups < 2) {
		trials->group = 0;
		trials->flight_ns = trials->rest_ns = 0;
		return;
	}
	here.progress += trials->pauses;
	fresh = fresh_of(view, plan, gpu, trials->group);
	note_flight(trials, fresh, &here, now_ns);
	if (trials->rest_ns && (here.progress != trials->progress || now_ns >= trials->rest_ns))
		trials->rest_ns = 0;
	if (is_over(trials, fresh, now_ns))
		pass_on(trials, view, plan, gpu, now_ns);
	again = now_ns + (tell(trials, view, gpu, plan) ? LOOK_NS : SEEK_NS);
	if (again < plan->next_wakeup_ns)
		plan->next_wakeup_ns = again;
}
