/* Groups applications by first-fit decreasing; see fair_groups.h. */
#include "policy/algo/control/fair_groups.h"

#include <stdbool.h>

static bool joins(const struct td_fair_member *members, const uint32_t *order, uint32_t placed,
	uint32_t group, const struct td_fair_member *newcomer, double slack)
{
	double core = newcomer->core, memory = newcomer->memory;

	for (uint32_t k = 0; k < placed; k++) {
		if (members[order[k]].group != group)
			continue;
		core += members[order[k]].core;
		memory += members[order[k]].memory;
	}
	return core <= 1 + slack && memory <= 1;
}

static void sort_heaviest_first(
	const struct td_fair_member *members, uint32_t count, uint32_t *order)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i;

		for (; at && members[i].core > members[order[at - 1]].core; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

uint32_t td_fair_groups(
	struct td_fair_member *members, uint32_t count, double slack, uint32_t *order)
{
	double core = 0, memory = 0;
	uint32_t groups = 0;

	sort_heaviest_first(members, count, order);
	for (uint32_t i = 0; i < count; i++) {
		core += members[i].core;
		memory += members[i].memory;
	}
	for (uint32_t k = 0; k < count; k++) {
		struct td_fair_member *m = &members[order[k]];

		m->group = 0;
		if (core > 1 || memory > 1)
			while (m->group < groups && !joins(members, order, k, m->group, m, slack))
				m->group++;
		if (m->group == groups || !groups)
			groups = m->group + 1;
	}
	for (uint32_t k = count; k--;) {
		struct td_fair_member *m = &members[order[k]];

		m->priority = 0;
		for (uint32_t l = k + 1; l < count; l++)
			m->priority += members[order[l]].group == m->group;
	}
	return groups;
}

uint32_t td_fair_turn(uint32_t groups, uint64_t now_ns)
{
	return groups ? (uint32_t)(now_ns / TD_SLICE_NS % groups) : 0;
}
