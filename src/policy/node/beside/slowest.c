/* Finds the lead of a job; see slowest.h. */
#include "policy/node/beside/slowest.h"

/* A mean covers about MEAN_STEPS steps and is compared once it has ENOUGH of them. */
#define MEAN_STEPS 16
#define ENOUGH     8
/* A lead that has taken this many of its own step times without a step has stopped. */
#define STOPPED 4

static uint32_t find_client(const struct td_view *view, uint32_t id)
{
	for (uint32_t c = 0; c < view->client_count; c++)
		if (view->clients[c].id == id)
			return c;
	return UINT32_MAX;
}

static bool is_one(const struct td_client_view *client, uint32_t gpu, uint32_t group)
{
	return client->gpu == gpu && client->group == group && client->steps && client->step_ns;
}

/* Returns the entry of a process, or TD_SLOWEST_MAX if there is none left. */
static uint32_t place_of(struct td_slowest *slowest, const struct td_view *view, uint32_t id)
{
	uint32_t free_place = TD_SLOWEST_MAX;

	for (uint32_t i = 0; i < TD_SLOWEST_MAX; i++) {
		if (slowest->processes[i].id == id)
			return i;
		if (free_place == TD_SLOWEST_MAX &&
			(!slowest->processes[i].id ||
				find_client(view, slowest->processes[i].id) == UINT32_MAX))
			free_place = i;
	}
	if (free_place < TD_SLOWEST_MAX) {
		slowest->processes[free_place].id = id;
		slowest->processes[free_place].seen = 0;
		slowest->processes[free_place].steps = slowest->processes[free_place].mean_ns = 0;
		slowest->processes[free_place].since_ns = 0;
	}
	return free_place;
}

/* Updates a process's mean step time. Returns true if it has finished a step. */
static bool note_steps(struct td_slowest *slowest, uint32_t i, const struct td_client_view *client)
{
	uint64_t *mean = &slowest->processes[i].mean_ns;
	uint32_t weight = slowest->processes[i].seen;

	if (slowest->processes[i].steps == client->steps)
		return false;
	slowest->processes[i].steps = client->steps;
	slowest->processes[i].seen += weight < MEAN_STEPS;
	if (client->step_ns < UINT64_MAX - slowest->processes[i].since_ns)
		slowest->processes[i].since_ns += client->step_ns;
	weight = slowest->processes[i].seen;
	*mean = *mean - *mean / weight + client->step_ns / weight;
	return true;
}

static uint32_t lead_place(const struct td_slowest *slowest)
{
	for (uint32_t i = 0; i < TD_SLOWEST_MAX; i++)
		if (slowest->lead && slowest->processes[i].id == slowest->lead)
			return i;
	return TD_SLOWEST_MAX;
}

static void follow(struct td_slowest *slowest, uint32_t i)
{
	slowest->lead = slowest->processes[i].id;
	for (uint32_t k = 0; k < TD_SLOWEST_MAX; k++)
		slowest->processes[k].since_ns = 0;
}

/* Makes process i the lead if it has to be, after one of its steps has ended. */
static void compare(struct td_slowest *slowest, uint32_t i)
{
	uint32_t lead = lead_place(slowest);
	uint64_t mean = slowest->processes[i].mean_ns;

	if (lead == i || lead == TD_SLOWEST_MAX)
		follow(slowest, i);
	else if (slowest->processes[i].since_ns / STOPPED >= slowest->processes[lead].mean_ns)
		follow(slowest, i);
	else if (slowest->processes[i].seen >= ENOUGH && slowest->processes[lead].seen >= ENOUGH &&
		 mean > slowest->processes[lead].mean_ns / 4 * 5)
		follow(slowest, i);
}

uint32_t td_slowest_step(
	struct td_slowest *slowest, const struct td_view *view, uint32_t gpu, uint32_t group)
{
	uint32_t lead;

	if (slowest->group != group)
		*slowest = (struct td_slowest){.group = group};
	lead = find_client(view, slowest->lead);
	if (lead == UINT32_MAX || !is_one(&view->clients[lead], gpu, group))
		slowest->lead = 0;
	for (uint32_t c = 0; c < view->client_count; c++) {
		uint32_t i;

		if (!is_one(&view->clients[c], gpu, group))
			continue;
		i = place_of(slowest, view, view->clients[c].id);
		if (i < TD_SLOWEST_MAX && note_steps(slowest, i, &view->clients[c]))
			compare(slowest, i);
		else if (i < TD_SLOWEST_MAX && !slowest->lead)
			follow(slowest, i);
	}
	return slowest->lead ? find_client(view, slowest->lead) : UINT32_MAX;
}

uint32_t td_slowest_unit(const struct td_client_view *client)
{
	return client->step_unit ^ client->id * 2654435761u;
}
