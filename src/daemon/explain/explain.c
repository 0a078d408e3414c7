/* See explain.h. */
#include "daemon/explain/explain.h"

#include <stdio.h>

#include "daemon/explain/causes.h"
#include "daemon/explain/facts.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "proto/proto.h"

struct rows {
	void (*each)(void *arg, const struct td_msg *row);
	void *arg;
	uint32_t count;
};

static void send_row(
	struct rows *rows, const struct td_facts *facts, const struct td_cause *cause, uint32_t gpu)
{
	const struct td_process *process = facts->process;
	struct td_msg msg = {.type = TD_MSG_TYPE_cause};
	struct td_msg_cause *row = &msg.cause;

	snprintf(row->job, sizeof(row->job), "%s", process->job->name);
	snprintf(row->name, sizeof(row->name), "%s", process->name);
	snprintf(row->state, sizeof(row->state), "%s", td_process_state_now(facts->node, process));
	snprintf(row->id, sizeof(row->id), "%s", cause->id);
	row->process = process->id;
	row->pid = (uint32_t)process->pid;
	row->gpu = gpu;
	td_facts_list(facts, cause->text, row->figures, sizeof(row->figures));
	td_facts_fill(facts, cause->text, row->text, sizeof(row->text));
	td_facts_fill(facts, cause->todo, row->todo, sizeof(row->todo));
	rows->each(rows->arg, &msg);
	rows->count++;
}

static void send_state(struct rows *rows, const struct td_facts *facts)
{
	for (const struct td_cause *cause = td_causes; cause->id; cause++)
		if (cause->group == TD_CAUSES_STATE && cause->applies(facts)) {
			send_row(rows, facts, cause, TD_GPU_ANY);
			return;
		}
}

static void send_group(
	struct rows *rows, const struct td_facts *facts, enum td_cause_group group, uint32_t gpu)
{
	for (const struct td_cause *cause = td_causes; cause->id; cause++)
		if (cause->group == group && cause->applies(facts))
			send_row(rows, facts, cause, gpu);
}

uint32_t td_explain(const struct td_node *node, const struct td_process *process, uid_t reader,
	uint64_t now_ns, void (*each)(void *arg, const struct td_msg *row), void *arg)
{
	struct rows rows = {each, arg, 0};
	struct td_facts facts;
	struct td_list *it;

	td_facts_of_process(&facts, node, process, reader, now_ns);
	send_state(&rows, &facts);
	send_group(&rows, &facts, TD_CAUSES_PROCESS, TD_GPU_ANY);
	td_list_for_each (it, &process->clients) {
		td_facts_add_client(&facts, td_container_of(it, struct td_client, of_process));
		send_group(&rows, &facts, TD_CAUSES_GPU, (uint32_t)facts.gpu);
	}
	return since;
}

const char *td_process_state(const struct td_process *process)
{
	if (process->foreign)
		return *process->ungoverned ? "ungoverned" : "foreign";
	if (process->failed)
		return "failed";
	if (process->stop.is)
		return process->stop.is == TD_STOP_SILENT ? "unresponsive" : "stopped";
	if (process->job->settings.paused)
		return "paused";
	switch (process->phase) {
	case TD_PHASE_OPEN: return process->wants ? "running" : "idle";
	case TD_PHASE_DRAINING: return "draining";
	case TD_PHASE_FILLING: return "filling";
	case TD_PHASE_CLOSED:
	case TD_PHASE_N: break;
	}
	return process->wants || needs_since_ns(process) ? "waiting" : "idle";
}

const char *td_process_state_now(const struct td_node *node, const struct td_process *process)
{
	const char *state = td_process_state(process);

	if (!strcmp(state, "failed") || process->stop.is == TD_STOP_SILENT)
		return state;
	return td_stopped_now(node, process) ? "stopped" : state;
}

static bool shares_gpu(const struct td_process *a, const struct td_process *b)
{
	struct td_list *i, *j;

	td_list_for_each (i, &a->clients)
		td_list_for_each (j, &b->clients)
			if (td_container_of(i, struct td_client, of_process)->gpu ==
				td_container_of(j, struct td_client, of_process)->gpu)
				return true;
	return false;
}

static bool goes_before(
	const struct td_node *node, const struct td_process *a, const struct td_process *b)
{
	enum td_class of_a = a->job->settings.class, of_b = b->job->settings.class;

	if (node->policy->by_class && of_a != of_b)
		return of_a < of_b;
	return a->wants_since_ns < b->wants_since_ns;
}

/* Has the GPU, and uses it: who only has memory there keeps nobody from a turn. */
static bool is_busy(const struct td_process *process)
{
	return process->phase == TD_PHASE_DRAINING || process->phase == TD_PHASE_FILLING ||
	       (process->phase == TD_PHASE_OPEN && process->wants);
}

static bool has_memory(const struct td_process *process)
{
	struct td_list *it;

	td_list_for_each (it, &process->clients)
		if (td_container_of(it, struct td_client, of_process)->device.used)
			return true;
	return false;
}

/* The first that is stopped, and whose memory stays where this one could use the room. */
static const struct td_process *find_stopped(
	const struct td_node *node, const struct td_process *process)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		const struct td_process *other = td_container_of(it, struct td_process, of_node);

		if (other->stop.is && other->job != process->job && shares_gpu(other, process) &&
			has_memory(other))
			return other;
	}
	return NULL;
}

/* The process in the way: the first that is busy, or else the first that may be; and how many wait before this one. */
static const struct td_process *find_holder(
	const struct td_node *node, const struct td_process *process, unsigned *ret_before)
{
	const struct td_process *holder = NULL;
	struct td_list *it;

	*ret_before = 0;
	td_list_for_each (it, &node->processes) {
		const struct td_process *other = td_container_of(it, struct td_process, of_node);

		if (other->job == process->job || !shares_gpu(other, process))
			continue;
		/* Passed by, but what it has there may be what is missing. */
		if (other->stop.is)
			continue;
		if (other->phase != TD_PHASE_CLOSED &&
			(!holder || (is_busy(other) && !is_busy(holder))))
			holder = other;
		else if (other->phase == TD_PHASE_CLOSED && other->wants &&
			 !other->job->settings.paused && goes_before(node, other, process))
			(*ret_before)++;
	}
	return holder ? holder : find_stopped(node, process);
}

/* Another job's process of that class, or TD_CLASS_N: of any, may not use a GPU of this one, and wants to. */
static bool is_waited_for(
	const struct td_node *node, const struct td_process *process, enum td_class class)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		const struct td_process *other = td_container_of(it, struct td_process, of_node);

		if (other->job != process->job && other->phase == TD_PHASE_CLOSED && other->wants &&
			!other->stop.is && !other->job->settings.paused && !other->failed &&
			(class == TD_CLASS_N || other->job->settings.class == class) &&
			shares_gpu(other, process))
			return true;
	}
	return false;
}

/* Appends a sentence; what does not fit is cut off. */
__attribute__((format(printf, 4, 5))) static size_t add(
	char *buf, size_t len, size_t n, const char *format, ...)
{
	va_list args;
	int added;

	if (n + 1 >= len)
		return n;
	if (n)
		buf[n++] = ' ';
	va_start(args, format);
	added = vsnprintf(buf + n, len - n, format, args);
	va_end(args);
	return added < 0 ? n : n + (size_t)added;
}

static bool lacks_host(const struct td_process *process)
{
	return process->host.wanted_bytes > process->host.holding.told;
}

/* It was let in with a part on the host, as others' memory stays, and the host has no place for that part. */
static bool has_no_place(const struct td_process *process)
{
	return lacks_host(process) && process->phase == TD_PHASE_FILLING;
}

char *td_node_explain_bounds(
	const struct td_node *node, const struct td_process *process, char *buf, size_t len)
{
	char patience[32];
	size_t n = 0;
	struct td_list *it;

	*buf = 0;
	td_format_duration(patience, sizeof(patience), node->options.memory_patience_ns);
	if (process->job->settings.weight > 1)
		n = add(buf, len, n, "Its weight is %u.", process->job->settings.weight);
	if (td_job_is_to_be_upgraded(process->job))
		n = add(buf, len, n,
			td_tenant_has_a_chance(node, process->job)
				? "It is besteffort until its user's quota has room, and %s from "
				  "then on."
				: "It is besteffort: as %s it would be more than all of its user's "
				  "quota (quota.jobs, quota.gpus).",
			td_class_name((enum td_class)(process->job->settings.upgrade - 1)));
	if (process->stays == TD_BACKEND_CANNOT)
		n = add(buf, len, n,
			"Its memory stays on the GPU (backend auto): a GPU that it sees cannot map "
			"memory as moving it takes.");
	else if (process->stays == TD_BACKEND_REGISTERS)
		n = add(buf, len, n,
			"Its memory stays on the GPU (backend auto): it has %s open, which may "
			"tell other hardware where that is.",
			process->stays_for);
	if (process->pacing.pause_until_ns)
		n = add(buf, len, n,
			"A guaranteed job pauses: what will be over before it goes on is free, of "
			"the rest "
			"it may take %g%% of the GPU's time.",
			process->pacing.duty_ppm / 1e4);
	else if (process->pacing.duty_ppm)
		n = add(buf, len, n, "It may take %g%% of the GPU's time.",
			process->pacing.duty_ppm / 1e4);
	else if (process->job->settings.duty_ppm && process->job->settings.duty_ppm < TD_PPM)
		/* It has no gate to be paced at before it is let in. */
		n = add(buf, len, n, "Once let in it may take %g%% of the GPU's time.",
			process->job->settings.duty_ppm / 1e4);
	if (process->word & TD_WORD_WINDOW) {
		char window[32];

		td_format_duration(window, sizeof(window), process->pacing.window_ns);
		n = add(buf, len, n, "It may have %s of work in flight at once: %s.", window,
			is_waited_for(node, process, TD_CLASS_ONLINE)
				? "an online job waits for its GPU"
				: "a guaranteed job beside it is to find the GPU soon");
	}
	if (has_no_place(process))
		n = add(buf, len, n,
			"A part of its memory has no place: not on its GPU, for what others have "
			"there "
			"that cannot leave, and not on the host, as host.limit is used up. It "
			"waits "
			"until they free some, or the limit is raised; the others go on.");
	else if (lacks_host(process))
		n = add(buf, len, n,
			"What it should move off its GPU has no place: host.limit is used up.");
	td_list_for_each (it, &process->clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_process);
		const struct td_gpu *gpu = &node->gpus[client->gpu];
		uint64_t quota = td_quota_bytes(node, process->job, gpu),
			 soft = td_soft_bytes(node, process->job, gpu);
		char has[24], limit[24];

		td_format_size(has, sizeof(has), client->need_bytes);
		td_format_size(limit, sizeof(limit), client->device.told);
		if (client->needs)
			n = add(buf, len, n,
				"It waits for %s more on GPU %u, where it may have %s now.", has,
				td_gpu_number(node, client->gpu), limit);
		td_format_size(has, sizeof(has),
			gpu->stays_bytes - process->job->on[client->gpu].stays_bytes);
		if (process->job->kept_out_since_ns && !has_no_place(process))
			n = add(buf, len, n,
				"Others have %s there that cannot leave, which its job waits for, "
				"up to %s (memory.patience).",
				has, patience);
		td_format_size(has, sizeof(has), client->others_bytes + client->total.used);
		td_format_size(limit, sizeof(limit), quota);
		if (quota != UINT64_MAX && client->others_bytes + client->demanded_bytes > quota)
			n = add(buf, len, n,
				"Its job has %s on GPU %u, more than its limit of %s: it gets no "
				"more until it has freed enough.",
				has, td_gpu_number(node, client->gpu), limit);
		else if (quota != UINT64_MAX)
			n = add(buf, len, n, "Its job has %s of its %s on GPU %u.", has, limit,
				td_gpu_number(node, client->gpu));
		td_format_size(has, sizeof(has), client->overhead_bytes);
		if (quota != UINT64_MAX && client->overhead_known)
			n = add(buf, len, n,
				"Its contexts and code%s take %s there, which counts in that.",
				client->imported_bytes
					? ", and imported memory that nobody else has any more,"
					: "",
				has);
		else if (quota != UINT64_MAX)
			n = add(buf, len, n,
				"What its contexts and code take there is not known, and not in "
				"that.");
		td_format_size(has, sizeof(has), client->spilled_bytes);
		td_format_size(limit, sizeof(limit), soft);
		if (soft != UINT64_MAX && !client->spills)
			n = add(buf, len, n,
				"Its soft limit on GPU %u cannot be held: its memory stays on the "
				"GPU.",
				td_gpu_number(node, client->gpu));
		else if (soft != UINT64_MAX)
			n = add(buf, len, n,
				"Beyond %s on GPU %u its job's memory lies on the host: %s of it "
				"do.",
				limit, td_gpu_number(node, client->gpu), has);
		else if (td_quota_exceeds_gpu(node, client) && !client->spills)
			n = add(buf, len, n,
				"Its job has more than GPU %u has left, and no part of that can be "
				"elsewhere: it cannot go on until some is freed.",
				td_gpu_number(node, client->gpu));
		else if (client->spilled_bytes)
			n = add(buf, len, n, "%s of its memory on GPU %u lies on the host: %s.",
				has, td_gpu_number(node, client->gpu),
				td_quota_exceeds_gpu(node, client)
					? "its job has more than there is"
					: "the policy gives it no more");
		td_format_size(has, sizeof(has), client->fixed_bytes);
		if (client->fixed_bytes && process->backend == TD_BACKEND_SWAP)
			n = add(buf, len, n,
				"%s of its memory cannot leave GPU %u: pools, arrays, mappings of "
				"its own, what others have open, what the host has no place for.",
				has, td_gpu_number(node, client->gpu));
	}
	return buf;
}

/* Within a step, and what of all that is not in use or not there. */
static size_t explain_memory(
	const struct td_node *node, const struct td_client *client, char *buf, size_t len, size_t n)
{
	char most[24], least[24], cached[24], host[24];

	if (!client->step_peak_bytes)
		return n;
	td_format_size(most, sizeof(most), client->step_peak_bytes);
	td_format_size(least, sizeof(least), client->step_least_bytes);
	td_format_size(cached, sizeof(cached), client->cached_bytes);
	td_format_size(host, sizeof(host), client->host_bytes);
	return add(buf, len, n,
		"Of GPU %u's memory a step uses %s at most and %s at least (%s); %s is only kept, "
		"%s is on the host.",
		td_gpu_number(node, client->gpu), most, least,
		client->by_allocator ? "as its allocator says" : "by what it allocates", cached,
		host);
}

char *td_node_explain_steps(
	const struct td_node *node, const struct td_process *process, char *buf, size_t len)
{
	const struct td_steps_told *steps = &process->steps;
	char each[32], source[64] = "as the program says";
	struct td_list *it;
	size_t n;

	*buf = 0;
	if (!steps->median_ns)
		return buf;
	td_format_duration(each, sizeof(each), steps->median_ns);
	if (steps->unit)
		snprintf(source, sizeof(source), "found in what it launches, %u%% of them regular",
			steps->sure_ppm / 10000);
	n = add(buf, len, 0, "Its steps take %s; %llu so far, %s.", each,
		(unsigned long long)steps->count, source);
	td_list_for_each (it, &process->clients)
		n = explain_memory(
			node, td_container_of(it, struct td_client, of_process), buf, len, n);
	return buf;
}

/* While others wait for one of its GPUs: the turn that ends first. */
static const struct td_grant *find_turn(const struct td_process *process)
{
	const struct td_grant *first = NULL;
	struct td_list *it;

	td_list_for_each (it, &process->clients) {
		const struct td_grant *grant =
			&td_container_of(it, struct td_client, of_process)->grant;

		if (grant->turn_reason != TD_TURN_NONE &&
			(!first || grant->turn_ns < first->turn_ns))
			first = grant;
	}
	return first;
}

static bool may_name(uid_t reader, const struct td_process *process)
{
	return !reader || reader == process->uid;
}

/* Ends without a full stop. Returns buf. */
static char *name_process(const struct td_process *process, char *buf, size_t len)
{
	snprintf(buf, len, "%s (pid %d)", *process->name ? process->name : process->job->name,
		(int)process->pid);
	return buf;
}

char *td_node_explain_turn(const struct td_node *node, const struct td_process *process,
	uid_t reader, char *buf, size_t len)
{
	static const char *const reasons[TD_TURN_N] = {
		[TD_TURN_FIXED] = "as the policy has it",
		[TD_TURN_SHORT] = "one that waits has used the GPU little lately",
		[TD_TURN_NEW] = "it had used the GPU little when that began",
		[TD_TURN_GROWS] = "it, or one that waits, had used the GPU for no longer lately",
		[TD_TURN_LONG] = "it and those that wait are always busy",
		[TD_TURN_AHEAD] = "it has had more of the GPU than the next one",
	};
	const struct td_process *holder = process;
	const struct td_grant *turn;
	char length[32], name[96];
	unsigned before;

	*buf = 0;
	if (process->phase == TD_PHASE_CLOSED && process->wants)
		holder = find_holder(node, process, &before);
	if (!holder || holder->phase != TD_PHASE_OPEN)
		return buf;
	turn = find_turn(holder);
	if (!turn || turn->turn_ns >= TD_NEVER / 2)
		return buf;
	td_format_duration(length, sizeof(length), turn->turn_ns);
	if (holder == process)
		snprintf(buf, len, "Its turn lasts %s: %s.", length, reasons[turn->turn_reason]);
	else if (may_name(reader, holder))
		snprintf(buf, len, "The turn of %s lasts %s: %s.",
			name_process(holder, name, sizeof(name)), length,
			reasons[turn->turn_reason]);
	else
		snprintf(buf, len, "The turn that it waits for lasts %s.", length);
	return buf;
}

static void explain_unused(
	const struct td_node *node, const struct td_job *job, char *buf, size_t len)
{
	size_t n = (size_t)snprintf(buf, len, "has not used a GPU yet");
	char uuid[TD_UUID_TEXT], number[12];

	for (uint32_t i = 0; i < job->placed_count && n < len; i++) {
		uint32_t known = td_gpu_number_of(node, job->placed[i]);

		snprintf(number, sizeof(number), "%u", known);
		n += (size_t)snprintf(buf + n, len - n, "%s %s",
			i ? "," : "; its job was given GPU",
			known == TD_GPU_ANY ? td_uuid_format(uuid, job->placed[i]) : number);
	}
	if (n < len)
		snprintf(buf + n, len - n, ".");
}

/* It waits. */
static void explain_wait(const struct td_node *node, const struct td_process *process, uid_t reader,
	uint64_t now_ns, char *buf, size_t len)
{
	char since[32], holding[32], name[96], queue[32] = "nobody";
	const struct td_process *holder;
	unsigned before;

	td_format_duration(since, sizeof(since),
		now_ns - (process->wants ? td_process_waits_since_ns(process)
					 : needs_since_ns(process)));
	holder = find_holder(node, process, &before);
	if (!holder) {
		snprintf(buf, len,
			process->job->kept_out_since_ns
				? "has been waiting for %s; nobody holds its GPU."
				: "has been waiting for %s and is next; nobody holds its GPU.",
			since);
		return;
	}
	if (before)
		snprintf(queue, sizeof(queue), "%u", before);
	td_format_duration(holding, sizeof(holding), now_ns - holder->phase_since_ns);
	if (may_name(reader, holder))
		snprintf(buf, len,
			"has been waiting for %s: %s is %s on that GPU since %s; %s before it in "
			"the queue.",
			since, name_process(holder, name, sizeof(name)), td_process_state(holder),
			holding, queue);
	else
		snprintf(buf, len,
			"has been waiting for %s: another user's job has that GPU; %s before it "
			"in the queue.",
			since, queue);
}

static void explain_filling(const struct td_node *node, const struct td_process *process,
	uid_t reader, const char *since, char *buf, size_t len)
{
	const struct td_process *stopped = find_stopped(node, process);
	char name[96];

	if (stopped && may_name(reader, stopped))
		snprintf(buf, len,
			"is next: its memory has been coming back to the GPU for %s, beside that of "
			"%s, which is %s on that GPU and keeps it there.",
			since, name_process(stopped, name, sizeof(name)), td_process_state(stopped));
	else
		snprintf(buf, len, "is next: its memory has been coming back to the GPU for %s.",
			since);
}

static void explain_stopped(
	const struct td_process *process, enum td_stop stop, char *buf, size_t len)
{
	const int pid = (int)process->pid;
	char reason[96];

	if (stop == TD_STOP_SILENT)
		snprintf(reason, sizeof(reason), "does not acknowledge what the daemon tells it");
	else if (stop == TD_STOP_SIGNAL)
		snprintf(reason, sizeof(reason),
			"is stopped (SIGSTOP or Ctrl-Z; `kill -CONT %d` continues it)", pid);
	else if (stop == TD_STOP_TRACED)
		snprintf(reason, sizeof(reason),
			"is stopped (by a debugger: see TracerPid in /proc/%d/status)", pid);
	else
		snprintf(reason, sizeof(reason),
			"is stopped (its control group is frozen: see /proc/%d/cgroup)", pid);
	snprintf(buf, len,
		"%s: others that wait pass it by, and what it has on its GPU stays there; it takes "
		"its turn when it %s.",
		reason, stop == TD_STOP_SILENT ? "does" : "goes on");
}

char *td_node_explain(const struct td_node *node, const struct td_process *process, uid_t reader,
	uint64_t now_ns, char *buf, size_t len)
{
	enum td_stop stop = td_stopped_now(node, process);
	char since[32], name[96];
	int n = snprintf(buf, len, "%s ", name_process(process, name, sizeof(name)));

	td_format_duration(since, sizeof(since), now_ns - process->phase_since_ns);
	if (n < 0 || (size_t)n >= len)
		return buf;
	buf += n;
	len -= (size_t)n;
	if (*process->ungoverned) {
		snprintf(buf, len, "%s as without tandem: %s.",
			process->foreign ? "runs" : "runs in part", process->ungoverned);
	} else if (process->foreign) {
		snprintf(buf, len,
			"runs without tandem: another tandemd shares a GPU of it (tandem doctor "
			"says which).");
	} else if (process->failed) {
		snprintf(buf, len,
			"has lost its context to CUDA error %u: it runs on to see that, and what "
			"it has on its GPU stays there until it ends.",
			process->failed);
	} else if (stop) {
		explain_stopped(process, stop, buf, len);
	} else if (process->job->settings.paused) {
		snprintf(buf, len, "is paused: tandem resume lets it go on.");
	} else if (td_list_empty(&process->clients)) {
		explain_unused(node, process->job, buf, len);
	} else if (process->phase == TD_PHASE_OPEN) {
		snprintf(buf, len, "may use its GPU since %s%s.", since,
			is_waited_for(node, process, TD_CLASS_N) ? "; others wait for it" : "");
	} else if (process->phase == TD_PHASE_DRAINING) {
		snprintf(buf, len,
			"is giving its GPU up: its work in flight has been ending for %s.", since);
	} else if (process->phase == TD_PHASE_FILLING) {
		explain_filling(node, process, reader, since, buf, len);
	} else if (!process->wants && !needs_since_ns(process)) {
		snprintf(buf, len, "is idle: it has not asked for the GPU for %s.", since);
	} else {
		explain_wait(node, process, reader, now_ns, buf, len);
	}
	return buf - n;
}
