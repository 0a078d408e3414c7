/* This file implements stopped.h. */
#include "daemon/node/stopped.h"

#include <stdio.h>

#include "base/bounds.h"
#include "base/time.h"
#include "daemon/memory/quota.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"

/* A process is checked only after another one has waited this long, and at most this often. */
#define LOOK_NS (150 * TD_NS_PER_MS)
/*
 * How often a stopped process is checked while nobody waits for it. It sends a message itself when
 * it goes on.
 */
#define REST_NS TD_NS_PER_S
/* A check reads a few files, so at most this many processes are checked in one step. */
#define LOOKS_MAX 32
/* The time between the checks of two processes. */
#define PAUSE_NS (20 * TD_NS_PER_MS)
/* A look this long after the one before it is the first of a row. */
#define ROW_NS (2 * LOOK_NS)

/*
 * At most this much of the time between two steps counts as time in which a process could have
 * answered: the daemon itself may have been stopped.
 */
#define HEARD_NS TD_NS_PER_S

/* The processes that wait for one GPU. */
struct waiting {
	unsigned count;
	uint64_t since_ns; /* since when the first waiting program waits */
};

static struct td_client *client_at(struct td_list *it)
{
	return td_container_of(it, struct td_client, of_process);
}

const char *td_stop_name(enum td_stop stop)
{
	static const char *const names[TD_STOP_N] = {
		[TD_STOP_NONE] = "running",
		[TD_STOP_SIGNAL] = "SIGSTOP",
		[TD_STOP_TRACED] = "debugger",
		[TD_STOP_FROZEN] = "frozen",
		[TD_STOP_SILENT] = "unresponsive",
		[TD_STOP_LOCKED] = "checkpoint",
	};

	return names[stop];
}

/* Returns since when the process has been waiting for that GPU; 0 if it does not wait. */
static uint64_t waits_since_ns(const struct td_process *process, const struct td_client *client)
{
	if (process->stop.is || process->foreign || process->failed ||
		process->job->settings.paused)
		return 0;
	if (client->needs)
		return client->need_since_ns;
	if (!process->wants ||
		(process->phase != TD_PHASE_CLOSED && process->phase != TD_PHASE_FILLING))
		return 0;
	return td_process_waits_since_ns(process);
}

static void gather(const struct td_node *node, struct waiting *waiting)
{
	struct td_list *it, *of;

	td_list_for_each (it, &node->processes)
		td_list_for_each (of, &td_process_at(it)->clients) {
			struct waiting *w = &waiting[client_at(of)->gpu];
			uint64_t since_ns = waits_since_ns(td_process_at(it), client_at(of));

			if (!since_ns)
				continue;
			w->since_ns = w->count && w->since_ns < since_ns ? w->since_ns : since_ns;
			w->count++;
		}
}

/*
 * Returns since when another process has been waiting for a GPU on which this one has a turn or
 * memory; 0 if none waits.
 */
static uint64_t is_waited_for_ns(const struct td_process *process, const struct waiting *waiting)
{
	uint64_t since_ns = 0;
	struct td_list *it;

	td_list_for_each (it, &process->clients) {
		const struct td_client *client = client_at(it);
		const struct waiting *w = &waiting[client->gpu];
		bool has = process->phase != TD_PHASE_CLOSED || td_client_charge(client);

		if (!has || w->count <= (waits_since_ns(process, client) != 0))
			continue;
		if (!since_ns || w->since_ns < since_ns)
			since_ns = w->since_ns;
	}
	return since_ns;
}

/*
 * Takes back what the client was told and does not use. After this the process uses no more than
 * the ceiling allows, even if it goes on at this moment.
 */
static void take_back(struct td_node *node, struct td_client *client)
{
	const struct td_ceiling has = {client->device.used, client->total.used};
	struct td_ceiling claim;

	if (!node->io.ceiling || client->failed)
		return;
	claim = node->io.ceiling(client->process->peer, client->slot, &has);
	client->has_ceiling = true;
	td_holding_take_back(&client->device, claim.device_bytes);
	td_holding_take_back(&client->total, claim.all_bytes);
	td_quota_gather(node);
	/* When the process acknowledges this message, lift() removes the ceiling. */
	td_node_tell(node, client, client->device.told);
}

static void remove_ceiling(const struct td_node *node, const struct td_client *client)
{
	static const struct td_ceiling none = {UINT64_MAX, UINT64_MAX};

	if (node->io.ceiling)
		(void)node->io.ceiling(client->process->peer, client->slot, &none);
}

/* Removes the ceiling once the client has reported for its last limit and so is bound by it. */
static void lift(const struct td_node *node, struct td_client *client)
{
	if (!client->has_ceiling || !td_holding_is_heard(&client->device))
		return;
	client->has_ceiling = false;
	remove_ceiling(node, client);
}

void td_stopped_attached(const struct td_node *node, const struct td_client *client)
{
	remove_ceiling(node, client);
}

void td_stopped_told(struct td_node *node, const struct td_client *client)
{
	const struct td_ceiling ceiling = {
		td_client_charge(client), td_holding_charge(&client->total)};

	if (client->has_ceiling)
		(void)node->io.ceiling(client->process->peer, client->slot, &ceiling);
}

void td_stopped_is_silent(struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	struct td_list *it;

	process->stop.is = TD_STOP_SILENT;
	process->stop.since_ns = now_ns;
	td_node_event(node, TD_EVENT_UNRESPONSIVE, process, TD_GPU_ANY, now_ns, 0, 0,
		"it does not acknowledge the daemon's messages: until it does, others do not wait "
		"for it");
	td_list_for_each (it, &process->clients)
		take_back(node, client_at(it));
}

static void mark_stopped(
	struct td_node *node, struct td_process *process, enum td_stop why, uint64_t now_ns)
{
	struct td_list *it;
	char detail[96];

	process->stop.is = why;
	process->stop.since_ns = now_ns;
	snprintf(detail, sizeof(detail), "%s: others get its turns until it goes on",
		td_stop_name(why));
	td_node_event(node, TD_EVENT_STOPPED, process, TD_GPU_ANY, now_ns, 0, 0, detail);
	td_list_for_each (it, &process->clients)
		take_back(node, client_at(it));
}

void td_stopped_is_locked(struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	struct td_list *it;

	process->stop.is = TD_STOP_LOCKED;
	process->stop.since_ns = now_ns;
	td_list_for_each (it, &process->clients)
		take_back(node, client_at(it));
}

static void go_on(struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	process->stop.is = TD_STOP_NONE;
	td_node_event(node, TD_EVENT_CONTINUED, process, TD_GPU_ANY, now_ns,
		now_ns - process->stop.since_ns, 0, NULL);
	/* A stopped process could not drain, so its time to drain starts now. */
	if (process->phase == TD_PHASE_DRAINING)
		process->drain_deadline_ns = now_ns + 2 * node->options.drain_deadline_ns;
}

/*
 * Returns whether the program has counted work in its meter page since the look before, which is
 * not long ago. Then it ran, and no file need be read.
 */
static bool has_counted(const struct td_process *process, struct td_stop_watch *watch, bool first)
{
	const struct td_meter_page *meter = process->meter;
	uint64_t before = watch->counted;

	if (!meter)
		return false;
	watch->counted = atomic_load(&meter->launches) + atomic_load(&meter->gpu_ns);
	return !first && watch->counted != before;
}

static void check_process(struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	struct td_stop_watch *watch = &process->stop;
	bool first = now_ns >= watch->looked_ns + ROW_NS, ran, heard = watch->heard;
	enum td_stop before = watch->found, found;
	uint64_t cpu_ticks = 0;

	watch->found = TD_STOP_NONE;
	watch->heard = false;
	watch->looked_ns = now_ns;
	if (has_counted(process, watch, first) && !watch->is)
		return;
	found = node->io.stop(process->peer, &cpu_ticks);
	ran = cpu_ticks != watch->cpu_ticks;
	watch->found = found;
	watch->cpu_ticks = cpu_ticks;
	if (watch->is && (!found || ran))
		go_on(node, process, now_ns);
	else if (!watch->is && found && before && !ran && !heard)
		mark_stopped(node, process, found, now_ns);
}

/* Returns when to look at the process; TD_NEVER if that is not needed. */
static uint64_t look_at_ns(const struct td_process *process, const struct waiting *waiting)
{
	const struct td_stop_watch *watch = &process->stop;
	uint64_t since_ns = is_waited_for_ns(process, waiting);

	if (watch->is == TD_STOP_SILENT || watch->is == TD_STOP_LOCKED)
		return TD_NEVER;

	/* Messages read now may have been sent before the process was stopped. */
	if (watch->is && watch->heard)
		return watch->looked_ns;
	if (watch->is)
		return watch->looked_ns + (since_ns ? LOOK_NS : REST_NS);
	if (!since_ns)
		return TD_NEVER;
	return (watch->looked_ns > since_ns ? watch->looked_ns : since_ns) + LOOK_NS;
}

/* Checks the processes whose id is above `last`, or the others. */
static uint64_t look_around(struct td_node *node, const struct waiting *waiting, uint32_t last,
	bool above, unsigned *looks, uint64_t now_ns)
{
	uint64_t wakeup = TD_NEVER;
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		struct td_process *process = td_process_at(it);
		uint64_t at = look_at_ns(process, waiting);

		if (process->foreign || at == TD_NEVER || (process->id > last) != above)
			continue;
		if (at <= now_ns && *looks < LOOKS_MAX) {
			check_process(node, process, now_ns);
			node->last_looked = process->id;
			++*looks;
			at = look_at_ns(process, waiting);
		} else if (at <= now_ns) {
			at = now_ns + PAUSE_NS;
		}
		wakeup = at < wakeup ? at : wakeup;
	}
	return wakeup;
}

/*
 * Returns for how long the client has not acknowledged a GRANT; 0 if it has acknowledged all. The
 * time of a drain does not count, since a drain has a deadline of its own.
 */
static uint64_t note_debt(struct td_client *client, uint64_t elapsed_ns)
{
	if (client->failed || td_holding_is_heard(&client->device)) {
		client->owes_ns = 0;
		return 0;
	}
	/* The client has acknowledged another GRANT since, so its time begins anew. */
	if (!client->owes_ns || client->device.acked != client->owes_since_seq)
		client->owes_ns = 1;
	else if (client->process->phase != TD_PHASE_DRAINING)
		client->owes_ns += elapsed_ns;
	client->owes_since_seq = client->device.acked;
	return client->owes_ns;
}

static uint64_t debt_of(struct td_process *process, uint64_t elapsed_ns)
{
	uint64_t most_ns = 0;
	struct td_list *it;

	td_list_for_each (it, &process->clients) {
		uint64_t owes_ns = note_debt(client_at(it), elapsed_ns);

		most_ns = owes_ns > most_ns ? owes_ns : most_ns;
	}
	return most_ns;
}

static void lift_all(struct td_node *node, const struct td_process *process)
{
	struct td_list *it;

	if (process->stop.is)
		return;
	td_list_for_each (it, &process->clients)
		lift(node, client_at(it));
}

/*
 * Finds processes that have not answered for too long, and those that answer again. Returns when to
 * check again.
 */
static uint64_t watch_answers(struct td_node *node, uint64_t now_ns)
{
	uint64_t elapsed_ns = now_ns - node->answers_looked_ns, wakeup = TD_NEVER;
	struct td_list *it;

	if (elapsed_ns > HEARD_NS)
		elapsed_ns = HEARD_NS;
	node->answers_looked_ns = now_ns;
	td_list_for_each (it, &node->processes) {
		struct td_process *process = td_process_at(it);
		bool runs = !process->stop.is;
		uint64_t owes_ns = debt_of(process, runs ? elapsed_ns : 0);

		if (process->stop.is == TD_STOP_SILENT && !owes_ns &&
			process->phase != TD_PHASE_DRAINING)
			go_on(node, process, now_ns);
		else if (runs && owes_ns > TD_ANSWER_NS)
			td_stopped_is_silent(node, process, now_ns);
		else if (runs && owes_ns)
			wakeup = td_min_u64(
				wakeup, now_ns + td_min_u64(HEARD_NS, TD_ANSWER_NS + 1 - owes_ns));
		lift_all(node, process);
	}
	return wakeup;
}

static uint64_t look_at_all(struct td_node *node, uint64_t now_ns)
{
	struct waiting waiting[TD_GPU_MAX] = {0};
	uint32_t last = node->last_looked;
	uint64_t wakeup, other;
	unsigned looks = 0;

	if (!node->io.stop)
		return TD_NEVER;
	gather(node, waiting);
	/*
	 * The search starts behind the process that was checked last, so that every process has its
	 * turn.
	 */
	wakeup = look_around(node, waiting, last, true, &looks, now_ns);
	other = look_around(node, waiting, last, false, &looks, now_ns);
	return other < wakeup ? other : wakeup;
}

uint64_t td_stopped_step(struct td_node *node, uint64_t now_ns)
{
	uint64_t wakeup = look_at_all(node, now_ns), other = watch_answers(node, now_ns);

	return other < wakeup ? other : wakeup;
}

uint64_t td_stopped_told_since(const struct td_node *node, uint32_t seq, uint64_t now_ns)
{
	return node->next_seq == seq ? TD_NEVER : now_ns + HEARD_NS;
}

enum td_stop td_stopped_now(const struct td_node *node, const struct td_process *process)
{
	uint64_t cpu_ticks;

	if (process->stop.is || process->foreign || !node->io.stop)
		return process->stop.is;
	return node->io.stop(process->peer, &cpu_ticks);
}
