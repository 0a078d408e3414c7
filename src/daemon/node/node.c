/*
 * The events in a node's life: processes connect and leave, attach to GPUs, report memory, ask for
 * GPUs and fall idle. execute.c carries the plan out.
 */
#include "daemon/model/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/time.h"
#include "daemon/memory/capacity.h"
#include "daemon/memory/host.h"
#include "daemon/memory/overhead.h"
#include "daemon/memory/quota.h"
#include "daemon/memory/used.h"
#include "daemon/model/job.h"
#include "daemon/node/abilities.h"
#include "daemon/node/gpus.h"
#include "daemon/node/hangs.h"
#include "daemon/node/metering.h"
#include "daemon/node/place.h"
#include "daemon/node/stopped.h"
#include "proto/words.h"

/* The value of CUDA_ERROR_UNKNOWN. */
#define UNKNOWN_ERROR 999
/* One process may report at most this many invalid settings. */
#define COMPLAINTS_MAX 16
/* A process that connects is believed to have run for at most this long before. */
#define STEP_BEFORE_MAX_NS (24 * 3600 * TD_NS_PER_S)

static void report_profile(void *arg, const char *sentence)
{
	struct td_node *node = arg;

	td_node_event(node, TD_EVENT_PROFILE, NULL, TD_GPU_ANY, node->event_ns, 0, 0, sentence);
}

int td_node_init(struct td_node *node, const struct td_node_io *io)
{
	memset(node, 0, sizeof(*node));
	node->io = *io;
	node->next_id = 1;
	td_list_init(&node->processes);
	td_list_init(&node->clients);
	td_list_init(&node->jobs);
	td_list_init(&node->tenants);
	td_list_init(&node->supervisors);
	td_list_init(&node->acts);
	td_options_init(&node->options);
	td_events_init(&node->events);
	td_profiles_init(&node->profiles, report_profile, node);
	node->policy = node->options.policy;
	node->policy_state = calloc(1, node->policy->state_bytes);
	return node->policy_state ? 0 : -ENOMEM;
}

static bool has_clients(const struct td_node *node, uint32_t gpu)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients)
		if (td_client_at(it)->gpu == gpu)
			return true;
	return false;
}

static void free_client(struct td_node *node, struct td_client *client)
{
	uint32_t gpu = client->gpu;

	/* Another client of the process may use the slot later. */
	if (client->others_bytes)
		node->io.others(client->process->peer, client->slot, 0);
	td_list_remove(&client->of_node);
	td_list_remove(&client->of_process);
	node->client_count--;
	node->rests_until_ns = 0; /* the rows of the last step name the client */
	free(client);
	if (node->io.release && !has_clients(node, gpu))
		node->io.release(node->io.arg, node->gpus[gpu].uuid);
}

static void drop_client(struct td_node *node, struct td_client *client)
{
	uint32_t gpu = client->gpu;

	td_overhead_given_up(node, client, client->demanded_bytes);
	free_client(node, client);
	td_capacity_leave(node, gpu);
	td_gpus_changed(node, gpu);
}

void td_node_put(struct td_node *node, struct td_client *client, uint32_t gpu)
{
	uint32_t from = client->gpu;

	/* The client is on the GPU already, so a refusal would change nothing. */
	if (node->io.claim && !has_clients(node, gpu))
		(void)node->io.claim(node->io.arg, node->gpus[gpu].uuid, NULL);
	client->gpu = gpu;
	client->overhead_known = false;
	client->overhead_bytes = client->overhead_imported_bytes = 0;
	client->seen.valid = false;
	if (node->io.release && !has_clients(node, from))
		node->io.release(node->io.arg, node->gpus[from].uuid);
	td_capacity_leave(node, from);
	td_gpus_changed(node, gpu);
	td_gpus_changed(node, from);
	td_capacity_update(node, gpu);
	td_capacity_tell(node, client);
}

void td_node_drop_clients(struct td_node *node, struct td_process *process)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &process->clients)
		drop_client(node, td_container_of(it, struct td_client, of_process));
}

static void free_process(struct td_node *node, struct td_process *process)
{
	td_node_drop_clients(node, process);
	td_list_remove(&process->of_node);
	td_list_remove(&process->of_job);
	td_job_leave(process->job);
	if (process->service)
		td_lessons_part(&node->lessons, &process->service->study);
	td_service_free(process->service);
	free(process->came_from);
	free(process);
}

void td_node_deinit(struct td_node *node)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &node->processes)
		free_process(node, td_process_at(it));
	td_actions_deinit(node);
	td_supervisors_deinit(node);
	td_tenants_deinit(node);
	td_profiles_deinit(&node->profiles);
	free(node->policy_state);
	node->policy_state = NULL;
}

struct td_process *td_node_hello(struct td_node *node, void *peer, pid_t pid,
	struct td_identity who, const struct td_msg_hello *hello, uint64_t now_ns)
{
	struct td_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	td_host_init(&process->host);
	if (node->policy->exchanges) {
		node->event_ns = now_ns;
		td_profiles_look_speeds(&node->profiles);
	}
	process->job = td_job_join(node, who, hello, now_ns);
	if (!process->job) {
		free(process);
		return NULL;
	}
	td_list_init(&process->clients);
	process->peer = peer;
	process->id = node->next_id++;
	process->pid = pid;
	process->who = who;
	snprintf(process->name, sizeof(process->name), "%.63s", hello->name);
	(void)td_printable(process->name); /* the name is shown on other users' terminals */
	process->can = hello->can;
	process->instance = hello->instance;
	process->backend = hello->backend < TD_BACKEND_N ? hello->backend : TD_BACKEND_PLAIN;
	process->started_ns = process->phase_since_ns = process->wants_since_ns =
		process->idle_since_ns = now_ns;
	process->phase = TD_PHASE_CLOSED;
	process->word = TD_WORD_CLOSED;
	if (hello->holds) {
		process->phase = TD_PHASE_OPEN;
		process->wants = true;
		process->word = 0;
		td_node_event(node, TD_EVENT_RETURNED, process, TD_GPU_ANY, now_ns, 0, 0,
			"registered again, holding");
	}
	node->io.gate(peer, process->word, &(struct td_pacing){0});
	td_list_append(&node->processes, &process->of_node);
	td_list_append(&process->job->members, &process->of_job);
	td_supervisors_judge(node, process->job);
	return process;
}

static struct td_client *client_of_slot(const struct td_process *process, uint32_t slot)
{
	struct td_list *it;

	td_list_for_each (it, &process->clients) {
		struct td_client *client = td_container_of(it, struct td_client, of_process);

		if (client->slot == slot)
			return client;
	}
	return NULL;
}

/*
 * Lets a program that finds no place run as without tandem. Otherwise it would connect and wait
 * again and again.
 */
static int let_go_with(struct td_node *node, struct td_process *process,
	const struct td_msg_attach *msg, const struct td_err *why, uint64_t now_ns)
{
	td_node_let_go(node, process, msg->gpu, why, now_ns);
	return td_node_foreign_message(
		node, process, &(struct td_msg){TD_MSG_TYPE_attach, {.attach = *msg}});
}

/*
 * Returns the index of the process's GPU, which this daemon has claimed by then. Returns TD_GPU_MAX
 * with a sentence in err if it cannot be shared.
 */
static uint32_t take_gpu(struct td_node *node, const struct td_process *process,
	const struct td_msg_attach *msg, struct td_err *err)
{
	uint32_t gpu;

	if (!td_node_may_have_client(node, process->who)) {
		(void)td_err_set(err, -ENOSPC,
			"uid %u has used up its share of the %u clients that the daemon can have: "
			"its further "
			"programs run as without tandem",
			(unsigned)process->who.uid, TD_CLIENT_MAX);
		return TD_GPU_MAX;
	}
	gpu = td_gpus_come(node, process->who, msg, err);
	if (gpu == TD_GPU_MAX || !node->io.claim || has_clients(node, gpu) ||
		!node->io.claim(node->io.arg, node->gpus[gpu].uuid, err))
		return gpu;
	td_gpus_changed(node, gpu);
	return TD_GPU_MAX;
}

static int attach(struct td_node *node, struct td_process *process, const struct td_msg_attach *msg,
	uint64_t now_ns)
{
	struct td_client *client;
	struct td_err err = {0};
	uint32_t gpu;

	if (msg->slot >= TD_SLOT_MAX || client_of_slot(process, msg->slot))
		return -EPROTO;
	client = calloc(1, sizeof(*client));
	if (!client)
		return -ENOMEM;
	gpu = take_gpu(node, process, msg, &err);
	if (gpu == TD_GPU_MAX) {
		free(client);
		if (td_move_has_no_place(node, process, msg, err.msg, now_ns))
			return 0;
		return let_go_with(node, process, msg, &err, now_ns);
	}
	client->process = process;
	client->id = node->next_id++;
	client->gpu = gpu;
	client->slot = msg->slot;
	client->total_bytes = msg->total_bytes;
	client->sm_share_ppm = msg->sm_share_ppm < TD_PPM ? msg->sm_share_ppm : 0;
	client->mps = msg->mps;
	client->spills = msg->spills && process->backend == TD_BACKEND_SWAP;
	if (process->backend == TD_BACKEND_SWAP)
		node->gpus[gpu].host_memory =
			client->spills ? TD_HOST_MEMORY_YES : TD_HOST_MEMORY_NO;
	client->soft_bytes = client->shrunk_bytes = UINT64_MAX;
	client->attached_ns = now_ns;
	td_capacity_attach(
		node, gpu, td_used_bounded(msg->used_bytes), td_used_bounded(msg->reserve_bytes));
	client->grant.gate = TD_GATE_CLOSED;
	client->aside = process->moving.number && !memcmp(process->moving.gpu, msg->gpu, 16);
	if (client->aside)
		td_metering_arrive(client);
	process->failed = 0;
	td_list_append(&node->clients, &client->of_node);
	td_list_append(&process->clients, &client->of_process);
	node->client_count++;
	td_gpus_changed(node, gpu);
	td_stopped_attached(node, client);
	td_capacity_update(node, gpu);
	td_capacity_tell(node, client);
	td_node_event(node, TD_EVENT_ATTACHED, process, gpu, now_ns, 0, 0, node->gpus[gpu].name);
	return 0;
}

static int used(struct td_node *node, struct td_process *process, const struct td_msg_used *msg,
	uint64_t now_ns)
{
	struct td_client *client = client_of_slot(process, msg->slot);

	if (msg->slot == TD_SLOT_HOST)
		td_host_used(process, msg);
	else if (!client)
		return -EPROTO;
	else
		td_used_report(node, client, msg, now_ns);
	return 0;
}

static int stats(struct td_node *node, const struct td_process *process,
	const struct td_msg_stats *msg, uint64_t now_ns)
{
	struct td_client *client = client_of_slot(process, msg->slot);

	if (!client)
		return -EPROTO;
	td_used_stats(node, client, msg, now_ns);
	return 0;
}

static int ask(struct td_node *node, struct td_process *process, const struct td_msg_ask *msg,
	uint64_t now_ns)
{
	struct td_client *client = client_of_slot(process, msg->slot);

	if (msg->slot == TD_SLOT_HOST) {
		td_host_ask(process, msg, now_ns);
		return 0;
	}
	return client ? td_used_ask(node, client, msg, now_ns) : -EPROTO;
}

static void want(struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	if (process->wants)
		return;
	process->wants = true;
	process->wants_since_ns = now_ns;
	if (process->phase == TD_PHASE_CLOSED)
		td_node_event(node, TD_EVENT_WAITING, process, TD_GPU_ANY, now_ns, 0, 0, NULL);
}

static void idle(struct td_node *node, struct td_process *process, const struct td_msg_idle *msg,
	uint64_t now_ns)
{
	if (!process->wants)
		return;
	process->wants = false;
	/* The reported time must not be in the future, and not before the turn. */
	process->idle_since_ns = msg->since_ns < now_ns ? msg->since_ns : now_ns;
	if (process->idle_since_ns < process->phase_since_ns)
		process->idle_since_ns = process->phase_since_ns;
	td_node_event(node, TD_EVENT_IDLE, process, TD_GPU_ANY, now_ns,
		now_ns - process->idle_since_ns, 0, NULL);
}

static uint64_t moved_bytes(const struct td_node *node, uint32_t gpu)
{
	uint64_t bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		if (client->gpu == gpu)
			bytes += client->in_bytes + client->out_bytes;
	}
	return bytes;
}

static int drained(struct td_node *node, struct td_process *process,
	const struct td_msg_drained *msg, uint64_t now_ns)
{
	struct td_list *it;

	process->launches = msg->launches;
	/*
	 * The gate was opened since, and perhaps closed again. Older clients do not say which
	 * closing they acknowledge.
	 */
	if (process->phase != TD_PHASE_DRAINING || (msg->word && msg->word != process->word))
		return 0;
	td_node_event(node, TD_EVENT_DRAINED, process, TD_GPU_ANY, now_ns,
		now_ns - process->phase_since_ns, 0, NULL);
	process->phase = TD_PHASE_CLOSED;
	process->phase_since_ns = process->closed_ns = now_ns;
	td_list_for_each (it, &process->clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_process);
		struct td_gpu *gpu = &node->gpus[client->gpu];

		gpu->drained_ns = now_ns;
		gpu->drained_moved = moved_bytes(node, client->gpu);
	}
	return 0;
}

/*
 * Closes the gate once more, with a new value of the gate word. The process connected with work in
 * flight, which the daemon did not know when it closed the gate. Its memory cannot move until that
 * work has ended, so it must drain again; it cannot be let go.
 */
static void close_anew(struct td_node *node, struct td_process *process)
{
	process->word = ++process->word_count * TD_WORD_STEP | TD_WORD_CLOSED;
	node->io.gate(process->peer, process->word, &process->pacing);
}

/*
 * The process cannot drain. Opens its gate for one more drain deadline; the policy will close it
 * again.
 */
static void stuck(struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	struct td_list *it;

	if (process->phase == TD_PHASE_CLOSED || process->phase == TD_PHASE_FILLING)
		close_anew(node, process);
	if (process->phase != TD_PHASE_DRAINING)
		return;
	process->drain_overruns++;
	process->retry_ns = now_ns + node->options.drain_deadline_ns;
	td_node_event(node, TD_EVENT_STUCK, process, TD_GPU_ANY, now_ns,
		now_ns - process->phase_since_ns, 0,
		"its work did not end by the deadline: it goes on");
	process->phase = TD_PHASE_OPEN;
	process->phase_since_ns = now_ns;
	process->word = 0;
	process->pacing = (struct td_pacing){0};
	node->io.gate(process->peer, 0, &(struct td_pacing){0});
	td_quota_gather(node);
	/*
	 * Only a drained process could acknowledge the GRANT that closed the gate, so a new one is
	 * sent.
	 */
	td_list_for_each (it, &process->clients) {
		struct td_client *client = td_container_of(it, struct td_client, of_process);

		if (!client->failed)
			td_node_tell(node, client, client->device.told);
	}
}

static int ready(struct td_process *process, const struct td_msg_ready *msg)
{
	struct td_client *client = client_of_slot(process, msg->slot);

	if (!client)
		return -EPROTO;
	if (msg->seq == client->device.seq)
		client->ready = true;
	return 0;
}

static int shortage(struct td_node *node, struct td_process *process,
	const struct td_msg_shortage *msg, uint64_t now_ns)
{
	const struct td_client *client = client_of_slot(process, msg->slot);

	if (!client)
		return -EPROTO;
	td_capacity_shortage(node, client, msg, now_ns);
	return 0;
}

/*
 * Returns the error of a failed context if all contexts have failed, else 0. A client that is set
 * aside for a move does not count.
 */
static uint32_t all_failed(const struct td_process *process)
{
	uint32_t result = 0;
	struct td_list *it;

	td_list_for_each (it, &process->clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_process);

		if (client->aside)
			continue;
		if (!client->failed)
			return 0;
		result = client->failed;
	}
	return result;
}

static void let_go(struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	process->failed = all_failed(process);
	if (process->phase != TD_PHASE_OPEN)
		process->phase_since_ns = now_ns;
	process->phase = TD_PHASE_OPEN;
	process->word = 0;
	process->pacing = (struct td_pacing){0};
	node->io.gate(process->peer, 0, &(struct td_pacing){0});
}

/*
 * Handles the failure of a context. Behind a closed gate the process would wait for memory that
 * cannot come back, and never see its error. So plans leave the client out until it has a new
 * context. Its memory on the device stays charged; unused promises are taken back.
 *
 * A process has one gate, and its kernels on other GPUs would find their memory gone if the gate
 * opened now. So the process is let go only when it has no healthy context left. Until then it
 * takes its turns for the healthy ones.
 */
static int failed(struct td_node *node, struct td_process *process, const struct td_msg_failed *msg,
	uint64_t now_ns)
{
	struct td_client *client = client_of_slot(process, msg->slot);
	char detail[64];

	if (!client)
		return -EPROTO;
	if (client->failed)
		return 0;
	snprintf(detail, sizeof(detail), "its context has failed: CUDA error %u", msg->result);
	td_node_event(node, TD_EVENT_FAILED, process, client->gpu, now_ns, 0, 0, detail);
	client->failed = msg->result ? msg->result : UNKNOWN_ERROR;
	client->spills = false;
	if (all_failed(process))
		let_go(node, process, now_ns);
	td_quota_gather(node);
	if (client->device.told != client->device.used)
		td_node_tell(node, client, client->device.used);
	client->grant.limit_bytes = client->device.told;
	return 0;
}

/*
 * Takes a report of a step. Refuses impossible reports: a step that began in the future, or one
 * that is longer than the process's age.
 */
static void note_step(struct td_process *process, const struct td_msg_step *msg, uint64_t now_ns)
{
	uint64_t age_ns = now_ns - process->started_ns + STEP_BEFORE_MAX_NS;
	struct td_steps_told told = {
		.count = msg->steps,
		.step_ns = msg->step_ns,
		.began_ns = msg->began_ns,
		.median_ns = msg->median_ns,
		.unit = msg->unit,
		.sure_ppm = msg->sure_ppm,
	};

	told.step_ns = told.step_ns < age_ns ? told.step_ns : age_ns;
	told.median_ns = told.median_ns < age_ns ? told.median_ns : age_ns;
	told.began_ns = told.began_ns < now_ns ? told.began_ns : now_ns;
	told.sure_ppm = told.sure_ppm < TD_PPM ? told.sure_ppm : TD_PPM;
	process->steps = told;
}

static int detach(struct td_node *node, struct td_process *process, uint32_t slot, uint64_t now_ns)
{
	struct td_client *client = client_of_slot(process, slot);

	if (!client)
		return -EPROTO;
	drop_client(node, client);
	td_move_left(node, process);
	/* If the process waited only for this client, it can be let go now. */
	if (!process->failed && !td_list_empty(&process->clients) && all_failed(process))
		let_go(node, process, now_ns);
	return 0;
}

/*
 * Records an event for an invalid setting. The setting is ignored, and the library prints nothing.
 */
static void rejected(
	struct td_node *node, struct td_process *process, const char *setting, uint64_t now_ns)
{
	char detail[192];

	if (process->complaints == COMPLAINTS_MAX)
		return;
	process->complaints++;
	snprintf(detail, sizeof(detail),
		"%.120s is invalid and ignored: see ENVIRONMENT in tandem(1)", setting);
	for (char *p = detail; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	td_node_event(node, TD_EVENT_REJECTED, process, TD_GPU_ANY, now_ns, 0, 0, detail);
}

static int service(struct td_node *node, struct td_process *process,
	const struct td_msg_service *msg, uint64_t now_ns)
{
	int r = td_service_declare(&process->service, msg, process->service_page);
	struct td_list *it;

	if (r || !process->service)
		return r;
	node->had.services = true;
	node->event_ns = now_ns;
	td_profiles_drop(process->service->profile);
	process->service->profile = td_profiles_take(&node->profiles, process->service->name);
	/* The service's name may be that of a program whose speeds are known. */
	td_list_for_each (it, &process->clients)
		td_container_of(it, struct td_client, of_process)->alone_of = 0;
	return 0;
}

int td_node_message(
	struct td_node *node, struct td_process *process, const struct td_msg *msg, uint64_t now_ns)
{
	process->stop.heard = true;
	if (msg->type == TD_MSG_TYPE_leaving)
		return td_process_leaving(process, &msg->leaving);
	if (msg->type == TD_MSG_TYPE_left) {
		td_hangs_left(node, process, &msg->left);
		return 0;
	}
	if (process->foreign)
		return td_node_foreign_message(node, process, msg);
	switch (msg->type) {
	case TD_MSG_TYPE_place: return td_node_place(node, process, &msg->place, now_ns);
	case TD_MSG_TYPE_rejected: rejected(node, process, msg->rejected.setting, now_ns); return 0;
	case TD_MSG_TYPE_backend: return td_process_backend(process, &msg->backend);
	case TD_MSG_TYPE_shares:
	case TD_MSG_TYPE_denied: return td_shares_message(node, process, msg, now_ns);
	case TD_MSG_TYPE_ungoverned:
		return td_node_ungoverned(node, process, &msg->ungoverned, now_ns);
	case TD_MSG_TYPE_attach: return attach(node, process, &msg->attach, now_ns);
	case TD_MSG_TYPE_detach: return detach(node, process, msg->detach.slot, now_ns);
	case TD_MSG_TYPE_used: return used(node, process, &msg->used, now_ns);
	case TD_MSG_TYPE_stats: return stats(node, process, &msg->stats, now_ns);
	case TD_MSG_TYPE_want: want(node, process, now_ns); return 0;
	case TD_MSG_TYPE_idle: idle(node, process, &msg->idle, now_ns); return 0;
	case TD_MSG_TYPE_drained: return drained(node, process, &msg->drained, now_ns);
	case TD_MSG_TYPE_stuck: stuck(node, process, now_ns); return 0;
	case TD_MSG_TYPE_step: note_step(process, &msg->step, now_ns); return 0;
	case TD_MSG_TYPE_service: return service(node, process, &msg->service, now_ns);
	case TD_MSG_TYPE_ready: return ready(process, &msg->ready);
	case TD_MSG_TYPE_ask: return ask(node, process, &msg->ask, now_ns);
	case TD_MSG_TYPE_failed: return failed(node, process, &msg->failed, now_ns);
	case TD_MSG_TYPE_movable:
	case TD_MSG_TYPE_moved: return td_move_message(node, process, msg, now_ns);
	case TD_MSG_TYPE_shortage: return shortage(node, process, &msg->shortage, now_ns);
	default: return -EPROTO;
	}
}

void td_node_gone(struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	td_node_event(node, TD_EVENT_LEFT, process, TD_GPU_ANY, now_ns,
		td_process_held_ns(process, now_ns), 0, NULL);
	td_hangs_gone(node, process, now_ns);
	free_process(node, process);
}

void td_node_options_changed(struct td_node *node, uint64_t now_ns, const char *what)
{
	struct td_list *it;

	for (uint32_t i = 0; i < node->gpu_count; i++)
		td_capacity_update(node, i);
	node->event_ns = now_ns;
	td_profiles_open(&node->profiles, node->options.profiles);
	td_abilities_look(node);
	if (node->policy != node->options.policy &&
		!td_policy_lacks(node->options.policy, node->options.has)) {
		void *state = calloc(1, node->options.policy->state_bytes);

		if (!state) {
			node->options.policy = node->policy;
			return;
		}
		free(node->policy_state);
		node->policy_state = state;
		node->policy = node->options.policy;
	}
	/* The next step fills it in again, if the policy asks for it. */
	td_list_for_each (it, &node->clients)
		td_client_at(it)->profile = (struct td_profile){0};
	td_node_event(node, TD_EVENT_OPTION, NULL, TD_GPU_ANY, now_ns, 0, 0, what);
}

uint64_t td_process_waits_since_ns(const struct td_process *process)
{
	return process->wants_since_ns > process->closed_ns ? process->wants_since_ns
							    : process->closed_ns;
}

uint64_t td_process_waited_ns(const struct td_process *process, uint64_t now_ns)
{
	bool waits = process->wants &&
		     (process->phase == TD_PHASE_CLOSED || process->phase == TD_PHASE_FILLING);

	return process->waited_ns + (waits ? now_ns - td_process_waits_since_ns(process) : 0);
}

uint64_t td_process_held_ns(const struct td_process *process, uint64_t now_ns)
{
	return process->held_ns +
	       (process->phase == TD_PHASE_OPEN ? now_ns - process->phase_since_ns : 0);
}
