/*
 * Numbers the sets of kinds of training tasks that Mudi has beside a service, up to three; see
 * beside.h. A set is called a company.
 *
 * Invariants: the first companies, as many as there are kinds, have one task each: company c is one
 * task of kind c. The same kinds are the same company, in any order of arrival.
 */
#include <string.h>

#include "sim/scheduler/beside.h"

static void insert(struct td_beside_company *company, uint32_t kind)
{
	uint32_t at = company->count++;

	for (; at && kind < company->kinds[at - 1]; at--)
		company->kinds[at] = company->kinds[at - 1];
	company->kinds[at] = kind;
}

/*
 * Adds up the layers of a company's tasks: "the cumulative feature layers as Psi for all training
 * tasks" (5.5).
 */
static void add_layers(const struct td_cluster *cluster, struct td_beside_company *company)
{
	memset(company->layers, 0, sizeof(company->layers));
	for (uint32_t k = 0; k < company->count; k++)
		for (uint32_t l = 0; l < TD_MUDI_LAYERS; l++)
			company->layers[l] +=
				cluster->options.knowledge->layers[company->kinds[k]][l];
}

uint32_t td_beside_company_of(struct td_cluster *cluster, uint32_t gpu, uint32_t newcomer)
{
	struct td_beside *state = cluster->sched_state;
	const struct td_sim_gpu *at = &cluster->gpus[gpu];
	struct td_beside_company company = {.count = 0};

	for (uint32_t i = 0; i < at->count && company.count < TD_SELECTOR_TASKS_MAX; i++)
		insert(&company, cluster->jobs[at->jobs[i]].profile);
	if (newcomer != TD_BESIDE_NOBODY && company.count < TD_SELECTOR_TASKS_MAX)
		insert(&company, newcomer);
	if (company.count == 1)
		return company.kinds[0];
	for (uint32_t c = cluster->profiles->count; c < state->company_count; c++)
		if (state->companies[c].count == company.count &&
			!memcmp(state->companies[c].kinds, company.kinds,
				company.count * sizeof(company.kinds[0])))
			return c;
	add_layers(cluster, &company);
	state->companies[state->company_count] = company;
	return state->company_count++;
}

uint32_t td_beside_companies_max(uint32_t kinds, uint32_t tasks)
{
	uint32_t n = kinds;

	if (tasks > 1)
		n += kinds * (kinds + 1) / 2;
	if (tasks > 2)
		n += kinds * (kinds + 1) * (kinds + 2) / 6;
	return n;
}

void td_beside_companies_init(struct td_cluster *cluster)
{
	struct td_beside *state = cluster->sched_state;

	state->company_count = cluster->profiles->count;
	for (uint32_t k = 0; k < cluster->profiles->count; k++) {
		state->companies[k] = (struct td_beside_company){.kinds = {k}, .count = 1};
		add_layers(cluster, &state->companies[k]);
	}
}
