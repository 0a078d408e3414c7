/*
 * The part of plans.c for host memory: how much the process asks the daemon for (host.h), and what
 * it does when it gets more or when other processes lack it.
 */
#include "preload/agent/plans.h"
#include "preload/agent/plans_internal.h"
#include "preload/base/backend.h"
#include "preload/base/settings.h"
#include "preload/link/client_internal.h"
#include "preload/link/host.h"
#include "proto/proto.h"
#include "proto/words.h"

uint64_t td_plans_host_bytes(void)
{
	const struct td_backend *backend = td_plans_backend();
	uint64_t bytes = 0;

	for (unsigned i = 0; td_host_is_bounded() && i < TD_SLOT_MAX; i++) {
		const struct td_plan_slot *plan = td_plans_at(i);

		/* While the gate is open no memory moves, so the limit does not count. */
		bool spills = plan->known && td_plans_spills(i) &&
			      td_plans_closing() == TD_CLOSING_DRAINED;
		bool limited = spills || (plan->known && plan->gate == TD_GATE_CLOSED);

		if (plan->attached && backend && backend->host_bytes)
			bytes += backend->host_bytes(
				i, limited ? plan->device_bytes : UINT64_MAX, spills);
	}
	return bytes;
}

void td_plans_host_give_back(unsigned slot)
{
	const struct td_backend *backend = td_plans_backend();

	if (td_host_is_pressed() && backend && backend->give_back)
		(void)td_plans_move(slot, 0, backend->give_back, td_plans_progress);
}

/*
 * After more host memory became available: memory that could not leave the device is tried again.
 */
static void leave_again(unsigned slot)
{
	struct td_plan_slot *plan = td_plans_at(slot);
	struct td_memory_stats stats;

	td_agent_stats(slot, &stats);
	if (plan->known && plan->gate == TD_GATE_CLOSED &&
		stats.resident_bytes > plan->device_bytes)
		plan->acknowledged = false;
}

uint64_t td_plans_host_again(unsigned slot, uint64_t now_ns)
{
	struct td_plan_slot *plan = td_plans_at(slot);
	struct td_memory_stats stats;

	if (plan->again_ns && now_ns >= plan->again_ns) {
		plan->again_ns = 0;
		plan->dirty = true; /* memory that counted as fixed may be movable again */
		leave_again(slot);
		return now_ns;
	}
	td_agent_stats(slot, &stats);
	plan->again_ns = stats.again_ns;
	return plan->again_ns ? plan->again_ns : UINT64_MAX;
}

void td_plans_host_message(const struct td_msg_grant *msg)
{
	bool more = td_host_message(msg);

	for (unsigned i = 0; i < TD_SLOT_MAX; i++) {
		if (more)
			leave_again(i);
		if (!td_plans_at(i)->attached)
			continue;
		td_plans_at(i)->dirty = true; /* the host memory decides how much counts as fixed */
		td_plans_host_give_back(i);
	}
}

/*
 * Returns the bytes that may have to leave the device, including promised allocations, if the
 * user's setting demands a reserved place on the host for them (TANDEM_HOST_FULL=refuse).
 */
static uint64_t movable_bytes(void)
{
	struct td_memory_stats stats;
	uint64_t bytes = 0;

	for (unsigned i = 0; td_settings.host_refuses && i < TD_SLOT_MAX; i++) {
		if (!td_plans_at(i)->attached)
			continue;
		td_client_totals(i, &stats);
		if (stats.demanded_bytes > stats.fixed_bytes)
			bytes += stats.demanded_bytes - stats.fixed_bytes;
	}
	return bytes;
}

static uint64_t wanted(void)
{
	uint64_t bytes = td_plans_host_bytes(), movable = movable_bytes(),
		 expected = td_host_expected();

	bytes = bytes > movable ? bytes : movable;
	return bytes > expected ? bytes : expected;
}

/*
 * Sends the request for host memory. The daemon grants no more than the memory it knows to be
 * allocated, so that is reported first.
 */
static void send_need(const struct td_msg *msg)
{
	struct td_memory_stats stats;

	for (unsigned i = 0; i < TD_SLOT_MAX; i++) {
		const struct td_plan_slot *plan = td_plans_at(i);

		if (!plan->attached)
			continue;
		td_client_totals(i, &stats);
		if (stats.demanded_bytes != plan->reported_bytes)
			td_plans_report_slot(i, plan->acknowledged_seq);
	}
	td_plans_send(msg);
}

void td_plans_host_step(void)
{
	td_host_step(send_need, wanted);
}
