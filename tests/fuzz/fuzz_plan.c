/* Parses bytes as the plan of a campaign, and as a list of shares. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profiler/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_plan(const struct td_plan *plan)
{
	struct td_err err;

	if (plan->count > TD_PLAN_MAX || !plan->online_count || plan->online_count >= plan->count)
		abort();
	for (uint32_t i = 0; i < plan->count; i++)
		if (plan->programs[i].online != (i < plan->online_count) ||
			td_profiler_check_name(plan->programs[i].name, &err) ||
			!*plan->programs[i].command)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct td_plan plan;
	unsigned percents[TD_PLAN_SHARES];
	char *text = malloc(size + 1);
	struct td_err err = {0};
	uint32_t count = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (!td_plan_parse(text, &plan, &err))
		check_plan(&plan);
	else if (!*err.msg)
		abort();
	if (!td_plan_shares(text, percents, &count, &err)) {
		if (!count || count > TD_PLAN_SHARES || percents[count - 1] > 100)
			abort();
		for (uint32_t i = 1; i < count; i++)
			if (percents[i] <= percents[i - 1])
				abort();
	}
	free(text);
	return 0;
}
