/* This file implements activity.h. */
#include "daemon/model/measure/activity.h"

#include "base/bounds.h"
#include "base/time.h"
#include "proto/words.h"

/* At most this much charged work can be queued for a GPU: a queue holds some thousand launches. */
#define LEFT_MAX_NS (10 * TD_NS_PER_S)

static uint64_t rise(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Returns how far a counter has risen, in time of the whole GPU. */
static uint64_t rise_of_gpu(uint64_t now, uint64_t before, uint32_t share_ppm)
{
	uint64_t ns = rise(now, before);

	return share_ppm < TD_PPM ? (uint64_t)((double)ns * share_ppm / TD_PPM) : ns;
}

static uint32_t part_ppm(uint64_t part_ns, uint64_t ns, uint32_t most_ppm)
{
	double ppm = (double)part_ns / (double)ns * TD_PPM;

	return ppm < most_ppm ? (uint32_t)ppm : most_ppm;
}

static void charge(uint64_t *left_ns, uint64_t more_ns)
{
	*left_ns = td_min_u64(*left_ns + td_min_u64(more_ns, LEFT_MAX_NS), LEFT_MAX_NS);
}

/*
 * Subtracts what a GPU can have done in elapsed_ns from what is left, and of the activity the same
 * part: queued work has the SMs that it has, however much of it is queued.
 */
static void work_off(
	struct td_activity *activity, uint64_t elapsed_ns, uint64_t *ret_used, uint64_t *ret_active)
{
	uint64_t used = td_min_u64(activity->used_left_ns, elapsed_ns), active;

	active = used < activity->used_left_ns
			 ? (uint64_t)((double)activity->active_left_ns * (double)used /
				      (double)activity->used_left_ns)
			 : activity->active_left_ns;
	active = td_min_u64(active, elapsed_ns);
	activity->used_left_ns -= used;
	activity->active_left_ns -= active;
	*ret_used = used;
	*ret_active = active;
}

/* Computes need_ppm from the charged times. */
static void find_need(struct td_activity *activity, uint64_t used_ns, uint64_t active_ns)
{
	double need, part = used_ns < TD_ACTIVITY_NEED_NS
				    ? (double)used_ns / (double)TD_ACTIVITY_NEED_NS
				    : 1;

	if (!used_ns)
		return;
	need = active_ns < used_ns ? (double)active_ns / (double)used_ns * TD_PPM : TD_PPM;
	if (activity->need_ppm)
		need = activity->need_ppm + (need - activity->need_ppm) * part;
	activity->need_ppm = need > 1 ? (uint32_t)need : 1;
}

bool td_activity_is_due(const struct td_activity *activity, uint64_t now_ns)
{
	return !activity->read_ns || rise(now_ns, activity->read_ns) >= TD_ACTIVITY_WINDOW_NS;
}

uint64_t td_activity_due_ns(const struct td_activity *activity)
{
	return activity->read_ns ? activity->read_ns + TD_ACTIVITY_WINDOW_NS : UINT64_MAX;
}

bool td_activity_read(struct td_activity *activity, const struct td_activity_counters *counters,
	uint32_t share_ppm, uint64_t now_ns)
{
	uint64_t elapsed_ns = rise(now_ns, activity->read_ns), used, active, core;
	uint64_t used_more, active_more;

	/* The first call only notes the time; work charged before it counts as new from then on. */
	if (!activity->read_ns) {
		activity->read_ns = now_ns;
		return false;
	}
	if (!td_activity_is_due(activity, now_ns))
		return false;
	used_more = rise(counters->used_ns, activity->read.used_ns);
	active_more = rise_of_gpu(counters->active_ns, activity->read.active_ns, share_ppm);
	charge(&activity->used_left_ns, used_more);
	charge(&activity->active_left_ns, active_more);
	work_off(activity, elapsed_ns, &used, &active);
	find_need(activity, used_more, active_more);
	core = rise_of_gpu(counters->core_ns, activity->read.core_ns, share_ppm);
	core = td_min_u64(core, elapsed_ns * (TD_ACTIVITY_CORES_MAX_PPM / TD_PPM));
	activity->used_ns += used;
	activity->active_ns += active;
	activity->core_ns += core;
	activity->used_ppm = part_ppm(used, elapsed_ns, TD_PPM);
	activity->active_ppm = part_ppm(active, elapsed_ns, TD_PPM);
	activity->core_ppm = part_ppm(core, elapsed_ns, TD_ACTIVITY_CORES_MAX_PPM);
	activity->known = true;
	activity->read = *counters;
	activity->read_ns = now_ns;
	return true;
}

void td_activity_follow(struct td_activity *activity, const struct td_activity *before)
{
	activity->known = before->known;
	activity->used_ppm = before->used_ppm;
	activity->active_ppm = before->active_ppm;
	activity->core_ppm = before->core_ppm;
	activity->need_ppm = before->need_ppm;
	activity->used_ns += before->used_ns;
	activity->active_ns += before->active_ns;
	activity->core_ns += before->core_ns;
}

void td_activity_stop(struct td_activity *activity)
{
	activity->read_ns = 0;
	activity->used_left_ns = activity->active_left_ns = 0;
	activity->known = false;
	activity->used_ppm = activity->active_ppm = activity->core_ppm = 0;
}
