/*
 * The conditions of causes.def, one for each row: each says whether the row applies to the facts. A
 * condition of the group STATE is asked only when none before it applies.
 */
#include "daemon/explain/causes.h"

#include "daemon/explain/facts.h"
#include "daemon/memory/quota.h"
#include "daemon/model/bursts.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "policy/node/beside/sms.h"
#include "daemon/node/tenant.h"
#include "proto/words.h"

#define CONDITION(id) static bool id##_applies(const struct td_facts *f)

/* -- the state -- */

CONDITION(ungoverned)
{
	return *f->ungoverned && f->process->foreign;
}

CONDITION(partly_ungoverned)
{
	return *f->ungoverned;
}

CONDITION(foreign_daemon)
{
	return f->process->foreign;
}

CONDITION(context_failed)
{
	return f->cuda_error;
}

CONDITION(unresponsive)
{
	return f->stop == TD_STOP_SILENT;
}

CONDITION(stopped_by_signal)
{
	return f->stop == TD_STOP_SIGNAL;
}

CONDITION(stopped_by_debugger)
{
	return f->stop == TD_STOP_TRACED;
}

CONDITION(checkpointed)
{
	return f->stop == TD_STOP_LOCKED && f->process->parking.is_saved;
}

CONDITION(locked)
{
	return f->stop == TD_STOP_LOCKED;
}

CONDITION(frozen)
{
	return f->stop;
}

CONDITION(leaving)
{
	return f->process->leave.asked_ns;
}

CONDITION(held_back)
{
	return f->process->job->held_back;
}

CONDITION(paused)
{
	return f->process->job->settings.paused;
}

CONDITION(placed)
{
	return td_list_empty(&f->process->clients) && *f->placed;
}

CONDITION(no_gpu_used)
{
	return td_list_empty(&f->process->clients);
}

CONDITION(open)
{
	return f->process->phase == TD_PHASE_OPEN;
}

CONDITION(draining)
{
	return f->process->phase == TD_PHASE_DRAINING;
}

CONDITION(filling_beside_stopped)
{
	return f->process->phase == TD_PHASE_FILLING && f->may_name_stopped;
}

CONDITION(filling)
{
	return f->process->phase == TD_PHASE_FILLING;
}

CONDITION(idle)
{
	return !f->process->wants && !td_process_needs_since_ns(f->process);
}

CONDITION(waits_for_memory_of_others)
{
	return !f->in_the_way && f->process->job->kept_out_since_ns;
}

CONDITION(waits_and_is_next)
{
	return !f->in_the_way;
}

CONDITION(waits_for_another_user)
{
	return !f->may_name_holder;
}

CONDITION(waits_for_stopped)
{
	return f->in_the_way->stop.is;
}

/* An open gate's time began when it opened, so it is not how long the holder has been idle. */
CONDITION(waits_for_idle_holder)
{
	return f->in_the_way->phase == TD_PHASE_OPEN && !f->in_the_way->wants;
}

CONDITION(waits_for_holder)
{
	return f->in_the_way;
}

/* -- the process -- */

CONDITION(action_under_way)
{
	return *f->action;
}

CONDITION(action_refused)
{
	return *f->refused_action;
}

CONDITION(moved)
{
	return f->moves;
}

CONDITION(reshared)
{
	return f->reshares;
}

CONDITION(cannot_share)
{
	return *f->unsharable && f->share_wanted_ppm &&
	       (f->share_wanted_ppm + TD_RESHARE_STEP_PPM / 2 <= f->share_ppm ||
		       f->share_wanted_ppm >= f->share_ppm + TD_RESHARE_STEP_PPM);
}

/*
 * This cause is shown only under a policy that moves jobs, since only then a user expects a move.
 */
CONDITION(cannot_move)
{
	return *f->unmovable && f->node->policy->needs & TD_HAS(MIGRATION) &&
	       !td_list_empty(&f->process->clients);
}

CONDITION(exchanged)
{
	return f->exchanged_to_ppm && f->exchanged_from_ppm;
}

CONDITION(exchanged_from_queue)
{
	return f->exchanged_to_ppm && !f->exchanged_from_ppm;
}

CONDITION(not_exchanged)
{
	return *f->unexchanged;
}

CONDITION(others_wait)
{
	return f->process->phase == TD_PHASE_OPEN && !f->process->job->settings.paused &&
	       !f->process->foreign && !f->process->failed && !f->stop &&
	       td_facts_is_waited_for(f->node, f->process, TD_CLASS_N);
}

CONDITION(own_turn)
{
	return f->turn_ns && !f->waits_for_turn;
}

CONDITION(turn_of_holder)
{
	return f->turn_ns && f->waits_for_turn && f->may_name_holder;
}

CONDITION(turn_of_another_user)
{
	return f->turn_ns && f->waits_for_turn && !f->may_name_holder;
}

CONDITION(steps_told)
{
	return f->step_ns && !f->process->steps.unit;
}

CONDITION(steps_found)
{
	return f->step_ns && f->process->steps.unit;
}

static bool is_outside(const struct td_facts *f, enum td_service_outside outside)
{
	return f->process->service && f->process->service->outside == outside;
}

CONDITION(figures_of_metrics)
{
	return is_outside(f, TD_SERVICE_ALL);
}

CONDITION(figures_without_tail)
{
	return is_outside(f, TD_SERVICE_MEAN);
}

CONDITION(figures_unknown)
{
	return is_outside(f, TD_SERVICE_UNKNOWN);
}

CONDITION(bursts)
{
	return *f->bursts;
}

CONDITION(requests_not_seen)
{
	return td_bursts_are_wanted(f->process) && !*f->bursts && !figures_unknown_applies(f) &&
	       !td_list_empty(&f->process->clients);
}

CONDITION(weight)
{
	return f->weight > 1;
}

CONDITION(upgrade_waits)
{
	return td_job_is_to_be_upgraded(f->process->job) &&
	       td_tenant_has_a_chance(f->node, f->process->job);
}

CONDITION(upgrade_exceeds_quota)
{
	return td_job_is_to_be_upgraded(f->process->job) &&
	       !td_tenant_has_a_chance(f->node, f->process->job);
}

CONDITION(memory_not_mappable)
{
	return f->process->stays == TD_BACKEND_CANNOT;
}

CONDITION(memory_registered)
{
	return f->process->stays == TD_BACKEND_REGISTERS;
}

CONDITION(duty_beside_pauses)
{
	return f->process->pacing.pause_until_ns;
}

CONDITION(duty)
{
	return f->process->pacing.duty_ppm && !f->process->pacing.pause_until_ns;
}

/* A process gets its pacing with its first turn, so a duty may be known but not in force yet. */
CONDITION(duty_to_come)
{
	return f->duty_ppm && f->duty_ppm < TD_PPM && !f->process->pacing.duty_ppm &&
	       !f->process->pacing.pause_until_ns;
}

/* Returns whether a window bounds the work. A window that only turns the meter on does not. */
static bool has_window(const struct td_facts *f)
{
	return f->process->word & TD_WORD_WINDOW && f->process->pacing.window_ns != TD_WINDOW_METER;
}

CONDITION(window_for_online)
{
	return has_window(f) && td_facts_is_waited_for(f->node, f->process, TD_CLASS_ONLINE);
}

CONDITION(window_for_guaranteed)
{
	return has_window(f) && !td_facts_is_waited_for(f->node, f->process, TD_CLASS_ONLINE);
}

/*
 * The process waits at its gate because the part of its memory that must go to the host has no room
 * there.
 */
CONDITION(host_full_and_kept_out)
{
	return f->host_wanted_bytes > f->host_limit_bytes && f->process->phase == TD_PHASE_FILLING;
}

CONDITION(host_full)
{
	return f->host_wanted_bytes > f->host_limit_bytes && f->process->phase != TD_PHASE_FILLING;
}

CONDITION(shared_memory)
{
	return f->handles;
}

CONDITION(shared_memory_unreachable)
{
	return f->handles && *f->obstacle;
}

CONDITION(denied_memory)
{
	return f->denied;
}

/* -- each GPU -- */

CONDITION(step_memory_of_allocator)
{
	return f->step_ns && f->step_peak_bytes && f->client->by_allocator;
}

CONDITION(step_memory_of_driver)
{
	return f->step_ns && f->step_peak_bytes && !f->client->by_allocator;
}

/* The service itself, and besteffort work beside it; a guaranteed job is held by its own steps. */
static bool has_forecast(const struct td_facts *f)
{
	return f->forecast_ppm && f->process->job->settings.class != TD_CLASS_GUARANTEED;
}

CONDITION(forecast)
{
	return has_forecast(f) && f->forecast_error_ns;
}

CONDITION(forecast_unsure)
{
	return has_forecast(f) && !f->forecast_error_ns;
}

CONDITION(waits_for_memory)
{
	return f->client->needs;
}

CONDITION(kept_out)
{
	return f->process->job->kept_out_since_ns && !host_full_and_kept_out_applies(f);
}

static bool has_limit(const struct td_facts *f)
{
	return f->limit_bytes != UINT64_MAX;
}

CONDITION(limit_exceeded)
{
	return has_limit(f) && f->client->others_bytes + f->client->demanded_bytes > f->limit_bytes;
}

CONDITION(limit)
{
	return has_limit(f) && !limit_exceeded_applies(f);
}

CONDITION(overhead_and_imported)
{
	return has_limit(f) && f->client->overhead_known && f->client->imported_bytes;
}

CONDITION(overhead)
{
	return has_limit(f) && f->client->overhead_known && !f->client->imported_bytes;
}

CONDITION(overhead_not_known)
{
	return has_limit(f) && !f->client->overhead_known;
}

CONDITION(soft_limit_not_held)
{
	return f->soft_bytes != UINT64_MAX && !f->client->spills;
}

CONDITION(soft_limit)
{
	return f->soft_bytes != UINT64_MAX && f->client->spills;
}

CONDITION(larger_than_gpu)
{
	return f->soft_bytes == UINT64_MAX && !f->client->spills &&
	       td_quota_exceeds_gpu(f->node, f->client);
}

static bool is_spilled(const struct td_facts *f)
{
	return f->soft_bytes == UINT64_MAX && f->spilled_bytes && !larger_than_gpu_applies(f);
}

CONDITION(spilled_for_want_of_room)
{
	return is_spilled(f) && td_quota_exceeds_gpu(f->node, f->client);
}

CONDITION(spilled_by_policy)
{
	return is_spilled(f) && !td_quota_exceeds_gpu(f->node, f->client);
}

CONDITION(fixed_memory)
{
	return f->fixed_bytes && f->process->backend == TD_BACKEND_SWAP;
}

const struct td_cause td_causes[] = {
#define CAUSE(id, group, text, todo) {#id, text, todo, TD_CAUSES_##group, id##_applies},
#include "daemon/explain/causes.def"
#undef CAUSE
	{0},
};
