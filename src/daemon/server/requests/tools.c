/*
 * Handles the requests of tools: rows of jobs, GPUs, options and events; changes; explanations.
 * Each request ends with END or ERROR.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/time.h"
#include "daemon/execute/show.h"
#include "daemon/memory/quota.h"
#include "daemon/memory/soft.h"
#include "daemon/model/bursts.h"
#include "daemon/model/job.h"
#include "daemon/node/gpus.h"
#include "daemon/node/metering.h"
#include "daemon/node/tenant.h"
#include "daemon/server/peers/peer_internal.h"
#include "proto/words.h"

/*
 * How long to wait for NVML's figures. After this the answer goes out without them. The first call
 * may have to wake each GPU, which takes a second or two.
 */
#define SAMPLE_PATIENCE_NS (3 * TD_NS_PER_S)
#define FIRST_PATIENCE_NS  (12 * TD_NS_PER_S)

/* The bounds of the time between rounds of WATCH. */
#define WATCH_PERIOD_MIN_NS (100 * TD_NS_PER_MS)
#define WATCH_PERIOD_MAX_NS (3600 * TD_NS_PER_S)

static const char *const backend_names[TD_BACKEND_N] = {"plain", "swap", "managed"};

bool td_tool_may_see(const struct td_peer *peer, struct td_identity who)
{
	return td_identity_may(peer->who, who);
}

/* Returns the process's own count of launches, or the count at the last drain if that is higher. */
static uint64_t launches(const struct td_process *process)
{
	uint64_t metered = process->meter ? atomic_load(&process->meter->launches) : 0;

	return metered > process->launches ? metered : process->launches;
}

/* Returns a limit as users see it, where 0 means no limit. */
static uint64_t bound(uint64_t bytes)
{
	return bytes == UINT64_MAX ? 0 : bytes;
}

static void show_service(const struct td_service *service, struct td_msg_job *job)
{
	if (!td_service_is_known(service))
		return;
	snprintf(job->service, sizeof(job->service), "%s", service->name);
	job->p50_ns = service->p50_ns;
	job->p99_ns = service->p99_ns;
	job->objective_ns = service->objective_ns;
	job->rate_milli = (uint64_t)(service->rate_per_s * 1000);
	job->queued = service->waiting;
	job->batch = service->batch;
}

static void show_bursts(const struct td_process *process, uint64_t now_ns, struct td_msg_job *job)
{
	struct td_bursts_seen seen;

	if (!td_bursts_of(process, now_ns, &seen))
		return;
	job->bursts_milli = (uint64_t)(seen.per_s * 1000);
	job->burst_ns = seen.length_ns;
}

static void send_job(struct td_peer *peer, const struct td_process *process,
	const struct td_client *client, uint64_t now_ns)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_job};
	struct td_msg_job *job = &msg.job;

	snprintf(job->class, sizeof(job->class), "%s", td_class_name(process->job->settings.class));
	snprintf(job->backend, sizeof(job->backend), "%s", backend_names[process->backend]);
	snprintf(job->state, sizeof(job->state), "%s",
		td_process_state_now(&peer->server->node, process));
	job->uid = process->who.uid;
	snprintf(job->job, sizeof(job->job), "%s", process->job->name);
	snprintf(job->name, sizeof(job->name), "%s", process->name);
	job->pid = (uint32_t)process->pid;
	job->launches = launches(process);
	job->started_ns = process->started_ns;
	job->steps = process->steps.count;
	job->step_ns = process->steps.median_ns;
	job->step_sure_ppm = process->steps.sure_ppm;
	job->step_found = process->steps.unit != 0;
	show_service(process->service, job);
	show_bursts(process, now_ns, job);
	job->held_ns = td_process_held_ns(process, now_ns);
	job->waited_ns = td_process_waited_ns(process, now_ns);
	job->handovers = process->handovers;
	job->gpu_time_ns = process->meter ? atomic_load(&process->meter->gpu_ns) : 0;
	/*
	 * Shows the duty in force or, behind a closed gate, the one set by hand. During a pause the
	 * duty does not count: work that ends before the pause does may use the whole GPU.
	 */
	job->duty_ppm = process->pacing.duty_ppm && !process->pacing.pause_until_ns
				? process->pacing.duty_ppm
				: process->job->settings.duty_ppm;
	job->weight = process->job->settings.weight;
	job->restarts = process->job->restarts;
	job->moves = process->moves;
	if (td_job_is_to_be_upgraded(process->job))
		snprintf(job->upgrade, sizeof(job->upgrade), "%s",
			td_class_name((enum td_class)(process->job->settings.upgrade - 1)));
	job->gpu = UINT32_MAX;
	if (client) {
		job->gpu = td_gpu_number(&peer->server->node, client->gpu);
		job->demanded_bytes = client->total.used;
		job->resident_bytes = client->device.used;
		job->host_bytes = client->host_bytes + client->paged_bytes;
		job->peak_bytes = client->peak_bytes;
		job->cached_bytes = client->cached_bytes;
		job->overhead_bytes = client->overhead_bytes;
		job->limit_bytes = bound(td_quota_bytes(
			&peer->server->node, process->job, &peer->server->node.gpus[client->gpu]));
		job->soft_bytes = bound(td_soft_bytes(
			&peer->server->node, process->job, &peer->server->node.gpus[client->gpu]));
		job->step_peak_bytes = client->step_peak_bytes;
		job->step_least_bytes = client->step_least_bytes;
		job->by_allocator = client->by_allocator;
		job->metered = client->activity.known;
		job->used_ppm =
			td_metering_ppm(&peer->server->node, client, client->activity.used_ppm);
		job->sm_activity_ppm =
			td_metering_ppm(&peer->server->node, client, client->activity.active_ppm);
		job->core_demand_ppm = client->activity.core_ppm;
		job->sm_share_ppm = td_sm_share_ppm(&peer->server->node, client);
		job->sm_share_wanted_ppm = client->sm_share_wanted_ppm;
		job->used_ns = client->activity.used_ns;
		job->sm_active_ns = client->activity.active_ns;
		job->in_bytes = client->in_bytes;
		job->out_bytes = client->out_bytes;
	}
	td_peer_send(peer, &msg);
}

uint32_t td_tool_send_others(struct td_peer *peer, uint32_t gpu)
{
	const struct td_node *node = &peer->server->node;
	struct td_msg msg = {.type = TD_MSG_TYPE_others};
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		if (client->gpu != gpu || td_tool_may_see(peer, client->process->who))
			continue;
		msg.others.processes++;
		msg.others.demanded_bytes += client->total.used;
		msg.others.resident_bytes += client->device.used;
		msg.others.host_bytes += client->host_bytes + client->paged_bytes;
	}
	if (!msg.others.processes)
		return 0;
	msg.others.gpu = td_gpu_number(node, gpu);
	td_peer_send(peer, &msg);
	return 1;
}

uint32_t td_tool_send_process(struct td_peer *peer, struct td_process *process, uint64_t now_ns)
{
	uint32_t rows = 0;
	struct td_list *it;

	if (td_list_empty(&process->clients)) {
		send_job(peer, process, NULL, now_ns);
		return 1;
	}
	td_list_for_each (it, &process->clients) {
		struct td_client *client = td_container_of(it, struct td_client, of_process);

		td_metering_read(&peer->server->node, client, now_ns);
		send_job(peer, process, client, now_ns);
		rows++;
	}
	return rows;
}

/* Adds NVML's figures. */
static void add_listed(struct td_msg_gpu *gpu, const struct td_nvml_gpu *listed)
{
	gpu->known = listed->known | (listed->lost ? TD_GPU_IS_LOST : 0) |
		     (listed->mig ? TD_GPU_IS_DIVIDED : 0);
	gpu->util_ppm = listed->utilisation_ppm;
	gpu->used_bytes = listed->used_bytes;
	gpu->memory_bytes = listed->total_bytes;
	gpu->sm_mhz = listed->sm_mhz;
	gpu->temperature_c = listed->temperature_celsius;
	gpu->power_mw = listed->power_mw;
	gpu->sm_max_mhz = listed->sm_max_mhz;
	gpu->sm_activity_ppm = listed->sm_activity_ppm;
	gpu->throttle = listed->throttle;
	gpu->xid = listed->xid;
	gpu->xid_age_ns = listed->xid ? td_time_now_ns() - listed->xid_ns : 0;
}

/* Adds the figures of jobs on the GPU, after its identity. */
static void add_known(struct td_msg_gpu *gpu, const struct td_peer *peer,
	const struct td_node *node, uint32_t index)
{
	const struct td_gpu *known = &node->gpus[index];
	struct td_list *it;

	memcpy(gpu->gpu, known->uuid, 16);
	snprintf(gpu->name, sizeof(gpu->name), "%s", known->name);
	gpu->total_bytes = known->total_bytes;
	gpu->capacity_bytes = known->capacity_bytes;
	gpu->handovers = known->handovers;
	gpu->handover_ns = known->handover_ns;
	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		if (client->gpu != index)
			continue;
		gpu->clients++;
		gpu->resident_bytes += client->device.used;
		gpu->demanded_bytes += client->total.used;
		if (client->process->phase == TD_PHASE_OPEN &&
			td_tool_may_see(peer, client->process->who))
			snprintf(gpu->holder, sizeof(gpu->holder), "%s",
				*client->process->name ? client->process->name
						       : client->process->job->name);
	}
}

uint32_t td_tool_gpu_index(const struct td_node *node, const uint8_t *uuid)
{
	uint32_t index = 0;

	while (index < node->gpu_count && memcmp(node->gpus[index].uuid, uuid, 16))
		index++;
	return index;
}

/* Adds the SM activity from the programs' meters, if NVML's GPM does not provide it. */
static void add_activity(struct td_msg_gpu *gpu, const struct td_node *node, uint32_t index)
{
	if (!(gpu->known & TD_GPU_KNOWS_SM_ACTIVITY) &&
		td_metering_of_gpu(node, index, &gpu->sm_activity_ppm))
		gpu->known |= TD_GPU_KNOWS_SM_ACTIVITY;
}

static void send_listed(struct td_peer *peer, const struct td_nvml_gpu *listed)
{
	const struct td_node *node = &peer->server->node;
	struct td_msg msg = {.type = TD_MSG_TYPE_gpu};
	uint32_t index = td_tool_gpu_index(node, listed->uuid);

	memcpy(msg.gpu.gpu, listed->uuid, 16);
	snprintf(msg.gpu.name, sizeof(msg.gpu.name), "%s", listed->name);
	msg.gpu.total_bytes = listed->total_bytes;
	msg.gpu.capacity_bytes = td_options_capacity(&node->options, listed->total_bytes);
	if (index < node->gpu_count)
		add_known(&msg.gpu, peer, node, index);
	msg.gpu.index = listed->index;
	add_listed(&msg.gpu, listed);
	td_mps_table_tell(&peer->server->mps, listed->uuid, &msg.gpu);
	if (index < node->gpu_count) {
		add_activity(&msg.gpu, node, index);
		td_tool_add_verdict(&msg.gpu, node, index);
	}
	td_peer_send(peer, &msg);
}

uint32_t td_tool_send_gpus(struct td_peer *peer)
{
	const struct td_node *node = &peer->server->node;
	uint32_t rows = node->listed_count;

	for (uint32_t i = 0; i < node->listed_count; i++)
		send_listed(peer, &node->listed[i]);
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		struct td_msg msg = {.type = TD_MSG_TYPE_gpu};

		if (!node->gpus[i].used || td_gpus_find(node, node->gpus[i].uuid))
			continue;
		add_known(&msg.gpu, peer, node, i);
		add_activity(&msg.gpu, node, i);
		msg.gpu.index = td_gpu_number(node, i);
		td_peer_send(peer, &msg);
		rows++;
	}
	return rows;
}

/* Returns the type of the answer that the tool waits for; it is sent with the next sample. */
static uint32_t gpus_answer(const struct td_peer *peer)
{
	return peer->asks_policies ? TD_MSG_TYPE_list_policies : TD_MSG_TYPE_list_gpus;
}

/*
 * Asks for GPUs or policies. Both need a fresh sample: what a policy lacks depends on NVML's
 * figures.
 */
static void ask_gpus(struct td_peer *peer, bool policies, uint64_t now_ns)
{
	struct td_watch *watch = &peer->server->watch;
	bool is_fresh;

	if (peer->gpus_asked_ns)
		return;
	peer->asks_policies = policies;
	is_fresh = td_watch_is_fresh(watch, now_ns);
	/* The node is given a sample after the messages of a turn, so it may not have it yet. */
	if (is_fresh && watch->sample.time_ns == peer->server->seen_ns)
		td_answer_begin(peer, gpus_answer(peer), "", now_ns);
	else
		peer->gpus_asked_ns = is_fresh ? watch->sample.time_ns : now_ns;
}

static void watch(struct td_peer *peer, uint64_t period_ns, uint64_t now_ns)
{
	peer->watch_period_ns = period_ns < WATCH_PERIOD_MIN_NS   ? WATCH_PERIOD_MIN_NS
				: period_ns > WATCH_PERIOD_MAX_NS ? WATCH_PERIOD_MAX_NS
								  : period_ns;
	td_tool_send_round(peer, now_ns);
}

bool td_tool_is_round_due(const struct td_peer *peer, uint64_t now_ns)
{
	return peer->watch_period_ns && now_ns >= peer->watch_next_ns && !peer->answer.type &&
	       td_outbox_is_empty(&peer->out);
}

/*
 * Sends a round of WATCH. The GPUs' figures are those of the last sample, so that the driver is not
 * waited for.
 */
void td_tool_send_round(struct td_peer *peer, uint64_t now_ns)
{
	bool was_answered = peer->is_answered;

	peer->watch_next_ns = now_ns + peer->watch_period_ns;
	(void)td_watch_is_fresh(&peer->server->watch, now_ns);
	peer->is_answered = true;
	td_answer_begin(peer, TD_MSG_TYPE_watch, "", now_ns);
	peer->is_answered = was_answered;
}

/*
 * Puts the peer into its user's queue. Each round that is sent to a watching tool then counts like
 * one of his requests.
 */
static uint64_t join_line(struct td_peer *peer, uint64_t now_ns)
{
	td_fair_add(&peer->server->fair, peer->who, &peer->waiting);
	return now_ns;
}

static uint64_t watch_turn(struct td_peer *peer, uint64_t now_ns)
{
	if (!peer->watch_period_ns || !td_outbox_is_empty(&peer->out))
		return UINT64_MAX;
	return now_ns < peer->watch_next_ns ? peer->watch_next_ns : join_line(peer, now_ns);
}

uint64_t td_tool_turn(struct td_peer *peer, uint64_t now_ns)
{
	uint64_t sampled_ns = peer->server->watch.sample.time_ns, until_ns;

	if (td_answer_is_due(peer))
		return join_line(peer, now_ns);
	if (peer->answer.type)
		return UINT64_MAX;
	if (!peer->gpus_asked_ns)
		return watch_turn(peer, now_ns);
	until_ns = peer->gpus_asked_ns + (sampled_ns ? SAMPLE_PATIENCE_NS : FIRST_PATIENCE_NS);
	if (sampled_ns < peer->gpus_asked_ns && now_ns < until_ns)
		return until_ns;
	/* All tools that have waited for the same sample are answered in their users' turns. */
	peer->gpus_asked_ns = 0;
	td_answer_ask(peer, gpus_answer(peer), "");
	return join_line(peer, now_ns);
}

static void set_options(struct td_peer *peer, const struct td_msg_set *msg, uint64_t now_ns)
{
	struct td_node *node = &peer->server->node;
	struct td_options copy = node->options;
	struct td_err err = {0};
	char what[128];
	int r;

	if (*msg->job && msg->check) {
		r = td_node_check_job(node, peer->who, msg->job, msg->key, msg->value, &err);
	} else if (*msg->job) {
		r = td_node_set_job(node, peer->who, msg->job, msg->key, msg->value, now_ns, &err);
	} else if (!td_node_is_owner(&peer->server->node, peer->who)) {
		r = td_err_set(&err, -EPERM, "only the daemon's owner may change %.64s", msg->key);
	} else if (msg->check) {
		r = td_options_set(&copy, msg->key, msg->value, &err);
	} else {
		r = td_options_set(&node->options, msg->key, msg->value, &err);
		snprintf(what, sizeof(what), "%.60s=%.60s", msg->key, msg->value);
		if (!r)
			td_node_options_changed(node, now_ns, what);
	}
	if (r)
		td_peer_fail(peer, r, err.msg);
	else
		td_peer_finish(peer, 0);
}

/* Answers whether a job with these settings would be protected if it came now. */
static void admit(struct td_peer *peer, const struct td_msg_admit *msg)
{
	struct td_err err = {0};
	enum td_class class = msg->class < TD_CLASS_N ? msg->class : TD_CLASS_BESTEFFORT;
	int r = td_tenant_check_new(&peer->server->node, peer->who, class, msg->mem, &err);

	if (r)
		td_peer_fail(peer, r, err.msg);
	else
		td_peer_finish(peer, 0);
}

static void send_option(struct td_peer *peer, const struct td_option_row *row)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_option};

	snprintf(msg.option.key, sizeof(msg.option.key), "%s", row->key);
	snprintf(msg.option.value, sizeof(msg.option.value), "%s", row->value);
	snprintf(msg.option.unit, sizeof(msg.option.unit), "%s", row->unit);
	snprintf(msg.option.help, sizeof(msg.option.help), "%s", row->help);
	if (!strcmp(row->key, "besteffort.cpus"))
		snprintf(msg.option.why_not, sizeof(msg.option.why_not), "%s",
			td_cpus_why(&peer->server->cpus, &peer->server->node, peer->who));
	td_peer_send(peer, &msg);
}

static void get_options(struct td_peer *peer, const char *key)
{
	struct td_option_row row;
	uint32_t rows = 0;

	for (size_t i = 0; td_options_row(&peer->server->node.options, i, &row); i++) {
		if (*key && strcmp(key, row.key))
			continue;
		send_option(peer, &row);
		rows++;
	}
	if (*key && !rows) {
		char text[128];

		snprintf(text, sizeof(text), "\"%.64s\" is not an option: see tandem set", key);
		td_peer_fail(peer, -EINVAL, text);
		return;
	}
	td_peer_finish(peer, rows);
}

uint32_t td_tool_send_settings(struct td_peer *peer, const struct td_job *job)
{
	struct td_option_row row = {
		.key = "job", .unit = "id", .help = "what it is named by, beside its name"};
	uint32_t rows = 0;

	snprintf(row.value, sizeof(row.value), "%s", *job->name ? job->name : "-");
	do
		send_option(peer, &row);
	while (td_job_row(&job->settings, rows++, &row));
	return rows;
}

uint32_t td_peer_send_event(struct td_peer *peer, const struct td_event *event)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_event};

	if (event->of_process && !td_tool_may_see(peer, event->who))
		return 0;
	msg.event.number = event->number;
	msg.event.time_ns = event->time_ns;
	msg.event.wall_ns = event->wall_ns;
	snprintf(msg.event.kind, sizeof(msg.event.kind), "%s", td_event_name(event->kind));
	snprintf(msg.event.job, sizeof(msg.event.job), "%s", event->job);
	snprintf(msg.event.name, sizeof(msg.event.name), "%s", event->name);
	msg.event.pid = event->pid;
	msg.event.gpu = event->gpu;
	msg.event.value_ns = event->value_ns;
	msg.event.value_bytes = event->value_bytes;
	snprintf(msg.event.detail, sizeof(msg.event.detail), "%s", event->detail);
	td_peer_send(peer, &msg);
	return 1;
}

static void stop_daemon(struct td_peer *peer, const struct td_msg_stop *msg)
{
	if (!td_node_is_owner(&peer->server->node, peer->who)) {
		td_peer_fail(peer, -EPERM, "only the daemon's owner may stop it");
	} else if (!msg->force && !td_list_empty(&peer->server->node.processes)) {
		td_peer_fail(peer, -EBUSY,
			"jobs are running; they go on without tandem if it stops: use --force");
	} else {
		td_peer_finish(peer, 0);
		/*
		 * Connections end with the process, after everything has been released. The tool
		 * that asked waits for that.
		 */
		peer->server->loop->stop = true;
	}
}

int td_tool_request(struct td_peer *peer, const struct td_msg *msg, uint64_t now_ns)
{
	switch (msg->type) {
	case TD_MSG_TYPE_list_jobs: td_answer_begin(peer, msg->type, "", now_ns); return 0;
	case TD_MSG_TYPE_watch: watch(peer, msg->watch.period_ns, now_ns); return 0;
	case TD_MSG_TYPE_list_gpus: ask_gpus(peer, false, now_ns); return 0;
	case TD_MSG_TYPE_list_policies: ask_gpus(peer, true, now_ns); return 0;
	case TD_MSG_TYPE_set: set_options(peer, &msg->set, now_ns); return 0;
	case TD_MSG_TYPE_act: td_tool_act(peer, &msg->act, now_ns); return 0;
	case TD_MSG_TYPE_admit: admit(peer, &msg->admit); return 0;
	case TD_MSG_TYPE_get:
		if (*msg->get.job)
			td_answer_begin(peer, msg->type, msg->get.job, now_ns);
		else
			get_options(peer, msg->get.key);
		return 0;
	case TD_MSG_TYPE_events: td_answer_begin_events(peer, &msg->events, now_ns); return 0;
	case TD_MSG_TYPE_explain:
		td_answer_begin(peer, msg->type, msg->explain.job, now_ns);
		return 0;
	case TD_MSG_TYPE_view: td_answer_begin(peer, msg->type, msg->view.job, now_ns); return 0;
	case TD_MSG_TYPE_stop: stop_daemon(peer, &msg->stop); return 0;
	default: return -EPROTO;
	}
}
