/*
 * Fake client processes for the node: no sockets, no clock. A fake does at once what libtandem
 * does: it drains when closed, shrinks and fills to its limit, and reports READY. With `slow` set
 * it answers only when told to. While it is stopped it reads nothing, and its messages wait.
 */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "daemon/explain/explain.h"
#include "daemon/memory/quota.h"
#include "daemon/memory/soft.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "preload/base/backend.h"

#define FAKES_MAX  16
#define UNREAD_MAX 512
#define MIB        (1ull << 20)

struct fake {
	struct td_process *process;
	uint32_t word;
	uint64_t window_ns;
	struct td_pacing pacing;
	bool others_wait;            /* as GRANT said last */
	bool slow, draining, spills; /* spills: can keep a part on the host */
	bool stays;                  /* but for that what is on the device stays there */
	uint32_t seq, slots;
	struct {
		uint32_t seq;
		uint64_t limit, demanded, resident, fixed, stranded, cached, in, out, asked,
			imported, given_up, managed;
		bool opening;
		uint64_t total;
		uint8_t gate; /* as in the last GRANT */
		int answer;   /* the last verdict, 0 for a refusal; -1: there was none */
		bool asks_paged;
		uint64_t paged;
		uint64_t capacity, quota, others;
		struct td_ceiling ceiling, claim; /* as in the pages; UINT64_MAX: none */
		struct td_msg need;               /* as it has asked last */
		bool asks_again;
	} slot[TD_SLOT_MAX];
	enum td_stop stopped;
	uint64_t cpu_ticks;
	struct td_msg unread[UNREAD_MAX];
	unsigned unread_count, looks;
	unsigned closings;
	char mem[32]; /* as SETTINGS said last */
	unsigned settings_told;
	uint8_t placed[TD_GPU_MAX]; /* the first bytes of their UUIDs */
	struct {
		uint32_t seq, ticket; /* ticket: of the last verdict */
		uint64_t bytes;
		bool others_lack;
	} host; /* as told last; with how often */
	unsigned host_told;
	uint32_t placed_count;
	struct td_msg_placed answer; /* the last of them */
	struct td_msg_order order;   /* to a supervisor: as told last; with how often */
	struct td_msg_leave leave;   /* likewise */
	unsigned orders, leaves;
	unsigned
		refused; /* messages that made no sense to the node: its connection would be gone */
};

struct world {
	struct td_node node;
	struct fake fakes[FAKES_MAX];
	uint64_t now;
	uint64_t events[TD_EVENT_N];
	struct td_event last_event[TD_EVENT_N]; /* of each kind */
	int foreign;        /* index of the GPU that another daemon has; -1: none */
	unsigned claims;    /* GPUs that are ours now */
	uint64_t gpu_bytes; /* 0: 64 MiB */
};

static struct world *fake_world;

__attribute__((unused)) static enum td_stop fake_stop(void *peer, uint64_t *ret_cpu_ticks)
{
	struct fake *f = peer;

	f->looks++;
	*ret_cpu_ticks = f->cpu_ticks;
	return f->stopped;
}

static struct td_ceiling fake_ceiling(void *peer, uint32_t slot, const struct td_ceiling *ceiling)
{
	struct fake *f = peer;

	if (ceiling)
		f->slot[slot].ceiling = *ceiling;
	return f->slot[slot].claim;
}

/* May it have so many bytes on the device, and in all, whatever its limit says? */
__attribute__((unused)) static bool fake_may_use(
	struct fake *f, uint32_t slot, uint64_t device, uint64_t all)
{
	struct td_ceiling *claim = &f->slot[slot].claim;

	if ((device > claim->device_bytes && device > f->slot[slot].ceiling.device_bytes) ||
		(all > claim->all_bytes && all > f->slot[slot].ceiling.all_bytes))
		return false;
	if (device > claim->device_bytes)
		claim->device_bytes = device;
	if (all > claim->all_bytes)
		claim->all_bytes = all;
	return true;
}

/* A grant from before the stop may have been taken back since, so it asks again. */
static bool fake_accepts(struct fake *f, const struct td_msg_grant *grant)
{
	uint64_t has = f->slot[grant->slot].resident, asked = f->slot[grant->slot].asked;

	return grant->verdict == TD_ANSWER_NO ||
	       fake_may_use(f, grant->slot, grant->verdict == TD_ANSWER_OK ? has + asked : 0,
		       f->slot[grant->slot].demanded + f->slot[grant->slot].paged + asked);
}

static void fake_answered(struct fake *f, const struct td_msg_grant *grant)
{
	uint64_t asked = f->slot[grant->slot].asked;

	if (!fake_accepts(f, grant)) {
		f->slot[grant->slot].asks_again = true;
		return;
	}
	f->slot[grant->slot].answer = grant->verdict == TD_ANSWER_NO ? 0 : grant->verdict;
	if (grant->verdict == TD_ANSWER_HOST && f->slot[grant->slot].asks_paged)
		f->slot[grant->slot].paged += asked;
	else if (grant->verdict != TD_ANSWER_NO)
		f->slot[grant->slot].demanded += asked;
	if (grant->verdict == TD_ANSWER_OK && f->spills)
		f->slot[grant->slot].resident += asked;
	f->slot[grant->slot].asked = 0;
}

static void fake_read(struct fake *f, const struct td_msg *msg)
{
	if (msg->type == TD_MSG_TYPE_grant && msg->grant.slot == TD_SLOT_HOST) {
		f->host.seq = msg->grant.seq;
		f->host.bytes = msg->grant.host_bytes;
		f->host.others_lack = msg->grant.others_wait;
		if (msg->grant.verdict)
			f->host.ticket = msg->grant.ticket;
		f->host_told++;
	} else if (msg->type == TD_MSG_TYPE_grant) {
		f->slot[msg->grant.slot].seq = f->seq = msg->grant.seq;
		f->slot[msg->grant.slot].limit = msg->grant.device_bytes;
		f->slot[msg->grant.slot].total = msg->grant.total_bytes;
		f->slot[msg->grant.slot].gate = msg->grant.gate;
		f->others_wait = msg->grant.others_wait;
		f->slot[msg->grant.slot].opening = msg->grant.gate != TD_GATE_CLOSED;
		if (msg->grant.verdict)
			fake_answered(f, &msg->grant);
	} else if (msg->type == TD_MSG_TYPE_attached) {
		f->slot[msg->attached.slot].capacity = msg->attached.capacity_bytes;
		f->slot[msg->attached.slot].quota = msg->attached.quota_bytes;
	} else if (msg->type == TD_MSG_TYPE_settings) {
		memcpy(f->mem, msg->settings.mem, sizeof(f->mem));
		f->settings_told++;
	} else if (msg->type == TD_MSG_TYPE_order) {
		f->order = msg->order;
		f->orders++;
	} else if (msg->type == TD_MSG_TYPE_leave) {
		f->leave = msg->leave;
		f->leaves++;
	} else if (msg->type == TD_MSG_TYPE_placed) {
		f->placed[f->placed_count++] = msg->placed.gpu[0];
		f->answer = msg->placed;
	}
}

static void fake_send(void *peer, const struct td_msg *msg)
{
	struct fake *f = peer;

	if (!f->stopped)
		fake_read(f, msg);
	else if (f->unread_count == UNREAD_MAX)
		abort();
	else
		f->unread[f->unread_count++] = *msg;
}

/* Lets the program go on, about to read its messages. */
__attribute__((unused)) static void fake_continues(struct fake *f)
{
	unsigned n = f->unread_count;

	f->stopped = TD_STOP_NONE;
	f->cpu_ticks++;
	f->unread_count = 0;
	for (unsigned i = 0; i < n; i++)
		fake_read(f, &f->unread[i]);
}

static void fake_gate(void *peer, uint32_t word, const struct td_pacing *pacing)
{
	struct fake *f = peer;

	if (word & TD_WORD_CLOSED && !(f->word & TD_WORD_CLOSED)) {
		f->closings++;
		f->draining = f->process != NULL;
	}
	f->word = word;
	f->window_ns = pacing->window_ns;
	f->pacing = *pacing;
}

static void fake_others(void *peer, uint32_t slot, uint64_t bytes)
{
	((struct fake *)peer)->slot[slot].others = bytes;
}

static void fake_event(void *arg, const struct td_event *event)
{
	struct world *w = arg;

	w->events[event->kind]++;
	w->last_event[event->kind] = *event;
}

static int fake_claim(void *arg, const uint8_t *uuid, struct td_err *err)
{
	struct world *w = arg;

	if (uuid[0] == w->foreign + 1)
		return td_err_set(err, -EBUSY, "that one is taken");
	w->claims++;
	return 0;
}

static void fake_release(void *arg, const uint8_t *uuid)
{
	(void)uuid;
	((struct world *)arg)->claims--;
}

/* The world is zero, or of the test before. */
static void world_init(struct world *w)
{
	const struct td_node_io io = {.send = fake_send,
		.gate = fake_gate,
		.others = fake_others,
		.event = fake_event,
		.arg = w,
		.claim = fake_claim,
		.release = fake_release,
		.ceiling = fake_ceiling};

	if (w->node.policy_state)
		td_node_deinit(&w->node);
	memset(w, 0, sizeof(*w));
	w->foreign = -1;
	fake_world = w;
	w->now = 1000000000;
	if (td_node_init(&w->node, &io))
		abort();
}

static int say(struct world *w, struct fake *f, struct td_msg *msg)
{
	int r;

	if (msg->type == TD_MSG_TYPE_ask && msg->ask.slot < TD_SLOT_MAX)
		f->slot[msg->ask.slot].need = *msg;
	r = td_node_message(&w->node, f->process, msg, w->now);
	f->refused += r < 0;
	return r;
}

__attribute__((unused)) static void fake_hello_of(struct world *w, struct fake *f, uid_t uid,
	const char *job, enum td_backend_kind backend, bool holds)
{
	struct td_msg_hello hello = {.class = TD_CLASS_BESTEFFORT,
		.weight = 1,
		.backend = (uint8_t)backend,
		.holds = holds,
		.abi = TD_PAGES_ABI};

	memset(f, 0, sizeof(*f));
	f->slot[0].answer = f->slot[1].answer = -1;
	f->slot[0].ceiling = f->slot[1].ceiling = (struct td_ceiling){UINT64_MAX, UINT64_MAX};
	strcpy(hello.job, job);
	strcpy(hello.name, job);
	f->process = td_node_hello(
		&w->node, f, 100 + (pid_t)(f - w->fakes), td_identity_local(uid), &hello, w->now);
	f->draining = false;
}

__attribute__((unused)) static void fake_hello(
	struct world *w, struct fake *f, const char *job, enum td_backend_kind backend, bool holds)
{
	fake_hello_of(w, f, 1000, job, backend, holds);
}

static void fake_memory(struct world *w, struct fake *f, uint32_t slot)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_used};

	f->slot[slot].claim = (struct td_ceiling){
		f->slot[slot].resident, f->slot[slot].demanded + f->slot[slot].paged};
	msg.used.slot = slot;
	msg.used.acked_seq = f->slot[slot].seq;
	msg.used.total_bytes = f->slot[slot].demanded + f->slot[slot].paged;
	msg.used.device_bytes = f->slot[slot].resident;
	msg.used.host_bytes = f->slot[slot].demanded - f->slot[slot].resident;
	msg.used.spilled_bytes = f->word & TD_WORD_CLOSED ? 0 : msg.used.host_bytes;
	msg.used.fixed_bytes = f->slot[slot].fixed;
	msg.used.stranded_bytes = f->slot[slot].stranded;
	msg.used.cached_bytes = f->slot[slot].cached;
	msg.used.imported_bytes = f->slot[slot].imported;
	msg.used.given_up_bytes = f->slot[slot].given_up;
	msg.used.paged_bytes = f->slot[slot].paged;
	msg.used.managed_bytes = f->slot[slot].managed;
	(void)say(w, f, &msg);
	msg = (struct td_msg){.type = TD_MSG_TYPE_stats};
	msg.stats.slot = slot;
	msg.stats.in_bytes = f->slot[slot].in;
	msg.stats.out_bytes = f->slot[slot].out;
	(void)say(w, f, &msg);
}

__attribute__((unused)) static void fake_attach(
	struct world *w, struct fake *f, uint32_t slot, uint8_t gpu, uint64_t demanded)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_attach};

	msg.attach.slot = slot;
	memset(msg.attach.gpu, gpu + 1, 16);
	msg.attach.spills = f->spills;
	msg.attach.total_bytes = w->gpu_bytes ? w->gpu_bytes : 64 * MIB;
	(void)say(w, f, &msg);
	f->slots = slot + 1;
	f->slot[slot].demanded = demanded;
	fake_memory(w, f, slot);
}

__attribute__((unused)) static void fake_want(struct world *w, struct fake *f)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_want};

	(void)say(w, f, &msg);
}

/* Does what a client's agent does about its last plan. */
static void fake_act(struct world *w, struct fake *f)
{
	if (f->draining) {
		struct td_msg msg = {.type = TD_MSG_TYPE_drained};

		f->draining = false;
		msg.drained.seq = f->seq;
		(void)say(w, f, &msg);
		return;
	}
	for (uint32_t s = 0; s < f->slots; s++)
		if (f->slot[s].asks_again) {
			f->slot[s].asks_again = false;
			fake_memory(w, f, s);
			(void)say(w, f, &f->slot[s].need);
		}
	for (uint32_t s = 0; s < f->slots; s++) {
		uint64_t target = f->slot[s].opening && f->slot[s].demanded < f->slot[s].limit
					  ? f->slot[s].demanded
					  : f->slot[s].limit;
		struct td_msg msg = {.type = TD_MSG_TYPE_ready};

		/* Nothing changes its place under running work. */
		if (f->spills && !(f->word & TD_WORD_CLOSED)) {
			target = f->slot[s].resident;
		} else if (f->slot[s].resident > f->slot[s].limit && !f->stays) {
			f->slot[s].out += f->slot[s].resident - f->slot[s].limit;
			f->slot[s].resident = f->slot[s].limit;
		} else if (f->slot[s].opening && f->slot[s].resident < target &&
			   fake_may_use(f, s, target, 0)) {
			f->slot[s].in += target - f->slot[s].resident;
			f->slot[s].resident = target;
		}
		fake_memory(w, f, s);
		msg.ready.slot = s;
		msg.ready.seq = f->slot[s].seq;
		/* The rest lies on the host, or comes when there is more room. */
		if (f->slot[s].opening && (f->slot[s].resident == f->slot[s].demanded ||
						  (f->slot[s].gate == TD_GATE_OPEN &&
							  f->slot[s].demanded > f->slot[s].limit)))
			(void)say(w, f, &msg);
	}
}

/* Steps until nothing moves any more. */
__attribute__((unused)) static uint64_t settle(struct world *w)
{
	uint64_t wakeup = TD_NEVER;

	for (int i = 0; i < 12; i++) {
		wakeup = td_node_step(&w->node, w->now);
		for (int k = 0; k < FAKES_MAX; k++)
			if (w->fakes[k].process && !w->fakes[k].slow && !w->fakes[k].stopped)
				fake_act(w, &w->fakes[k]);
	}
	return wakeup;
}

__attribute__((unused)) static void fake_dies(struct world *w, struct fake *f)
{
	td_node_gone(&w->node, f->process, w->now);
	f->process = NULL;
}

/* The ledger: what is really on the device never exceeds what the daemon calls its capacity. */
__attribute__((unused)) static bool within_capacity(const struct world *w)
{
	uint64_t resident[TD_GPU_MAX] = {0};
	struct td_list *it;

	td_list_for_each (it, &w->node.clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_node);
		const struct fake *f = client->process->peer;

		resident[client->gpu] += f->slot[client->slot].resident;
	}
	for (uint32_t g = 0; g < w->node.gpu_count; g++)
		if (resident[g] > w->node.gpus[g].capacity_bytes)
			return false;
	return true;
}

static void append_cause(void *arg, const struct td_msg *row)
{
	char(*said)[16384] = arg;
	size_t n = strlen(*said);

	snprintf(*said + n, sizeof(*said) - n, "%s%s%s%s", n ? " " : "", row->cause.text,
		*row->cause.todo ? " " : "", row->cause.todo);
}

/* Returns the causes that `tandem explain` shows root about a process, in one line. */
__attribute__((unused)) static const char *explained(const struct world *w, const struct fake *f)
{
	static char said[16384];

	*said = 0;
	td_explain(&w->node, f->process, td_identity_local(0), w->now, append_cause, &said);
	return said;
}
