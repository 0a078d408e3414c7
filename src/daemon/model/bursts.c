/* This file implements bursts.h. */
#include "daemon/model/bursts.h"

#include "daemon/model/job.h"
#include "daemon/model/node.h"

/* A random arrival is rarely so many times later than the average: once in 150. */
#define MUCH 5

bool td_bursts_are_wanted(const struct td_process *process)
{
	return process->job->settings.class == TD_CLASS_ONLINE &&
	       !td_service_is_known(process->service);
}

bool td_bursts_of(const struct td_process *process, uint64_t now_ns, struct td_bursts_seen *ret)
{
	const struct td_meter_page *meter = process->meter;
	uint64_t began_ns, every_ns;

	*ret = (struct td_bursts_seen){0};
	if (!meter || !td_bursts_are_wanted(process))
		return false;
	began_ns = atomic_load_explicit(&meter->burst_began_ns, memory_order_relaxed);
	every_ns = atomic_load_explicit(&meter->burst_every_ns, memory_order_relaxed);
	if (!every_ns)
		return false;
	/* Where none has come for much longer than usual, they have become rarer. */
	if (now_ns > began_ns && (now_ns - began_ns) / MUCH > every_ns)
		every_ns = now_ns - began_ns;
	ret->per_s = 1e9 / (double)every_ns;
	ret->length_ns = atomic_load_explicit(&meter->burst_ns, memory_order_relaxed);
	if (ret->length_ns > every_ns)
		ret->length_ns = every_ns;
	return true;
}
