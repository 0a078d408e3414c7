/* Has the table of schedulers; see schedulers.h. */
#include "sim/scheduler/schedulers.h"

#include <string.h>

const struct td_sched *const td_scheds[] = {&td_sched_fifo, &td_sched_preempt, &td_sched_gandiva,
	&td_sched_antman, &td_sched_tandem, NULL};

const struct td_sched *td_sched_find(const char *name)
{
	for (int i = 0; td_scheds[i]; i++)
		if (!strcmp(td_scheds[i]->name, name))
			return td_scheds[i];
	return NULL;
}
