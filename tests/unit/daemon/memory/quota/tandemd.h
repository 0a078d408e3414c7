/*
 * The daemon's node in the model of hard memory limits (test_node_quota.c), and what must hold of
 * its steps: a step that sends no GRANT has done all that there is to do until the time that it
 * names, or until an event. Header only: one user.
 */
#pragma once

#include "unit/daemon/memory/quota/world.h"

static void io_send(void *peer, const struct td_msg *msg)
{
	struct line *line = peer;

	w.told |= msg->type == TD_MSG_TYPE_grant;
	if (w.again)
		violated("a step without an event sends %s to program %d", td_proto_name(msg->type),
			line->program);
	if (line->hung_up)
		return;
	put(&line->down, msg);
	if (line->down.count > UNREAD_MOST)
		violated("program %d has %u messages to read", line->program, line->down.count);
}

/*
 * Returns whether the two differ at most in the expected end of a pause. Its last part counts as
 * past for who looks then, but the program keeps to the end that it was told (beside/pauses.h).
 */
static bool is_paced_the_same(const struct td_pacing *a, const struct td_pacing *b)
{
	struct td_pacing paused = *a;

	paused.pause_until_ns = b->pause_until_ns;
	return !memcmp(&paused, b, sizeof(paused));
}

static void io_gate(void *peer, uint32_t word, const struct td_pacing *pacing)
{
	struct line *line = peer;

	if (w.again &&
		((line->word ^ word) & TD_WORD_FLAGS || !is_paced_the_same(&line->pacing, pacing)))
		violated("a step without an event writes the gate of program %d: %#x",
			line->program, word);
	trace("gate of program %d: %#x", line->program, word);
	line->word = word;
	line->pacing = *pacing;
	if (line->mapped && !line->hung_up)
		w.programs[line->program].code->page(word);
}

static void io_others(void *peer, uint32_t slot, uint64_t bytes)
{
	struct line *line = peer;

	if (w.again)
		violated("a step without an event tells program %d the bytes of others",
			line->program);
	line->others[slot] = bytes;
	if (line->mapped && !line->hung_up)
		w.programs[line->program].code->others(slot, bytes);
}

static void io_event(void *arg, const struct td_event *event)
{
	(void)arg;
	if (w.again)
		violated("a step without an event has event %u", (unsigned)event->kind);
}

static void daemon_begin(bool stale)
{
	const struct td_node_io io = {
		.send = io_send, .gate = io_gate, .others = io_others, .event = io_event};

	if (td_node_init(&w.node, &io))
		abort();
	(void)td_options_set(&w.node.options, "quantum.min", "5ms", NULL);
	(void)td_options_set(&w.node.options, "quantum", "50ms", NULL);
	w.node.settle_ns = stale ? w.now_ns + 300 * MS : 0;
	w.up = true;
	w.wakeup_ns = 0;
	w.stepped = false;
}

static void daemon_dies(void)
{
	trace("the daemon dies");
	for (struct line *line = w.lines; line; line = line->next) {
		line->process = NULL;
		line->dropped = true;
		clear(&line->up);
	}
	td_node_deinit(&w.node);
	w.node.gpu_count = 0;
	td_list_init(&w.node.clients);
	w.up = false;
	for (unsigned i = 0; i < JOBS; i++)
		w.jobs[i].loose = true;
}

static void welcome(struct line *line, const struct td_msg_hello *hello)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_welcome};

	put(&line->down, &msg);
	line->process = td_node_hello(
		&w.node, line, 1000 + line->program, td_identity_local(1000), hello, w.now_ns);
	line->down.first->msg.welcome.arrived_ns = line->process->job->arrived_ns;
}

/*
 * Makes a step although nothing has happened and the time that the last one named has not come: it
 * must do nothing. So the daemon does not sleep past work that is ready.
 */
static void step_again(void)
{
	uint64_t due_ns;

	if (!w.up || !w.stepped || w.told || w.now_ns >= w.due_ns)
		return;
	w.again = true;
	due_ns = td_node_step(&w.node, w.now_ns);
	w.again = false;
	if (due_ns < w.due_ns)
		violated("the next step was due in %llu ns, and without an event is due in %llu",
			(unsigned long long)(w.due_ns - w.now_ns),
			(unsigned long long)(due_ns - w.now_ns));
	w.due_ns = w.wakeup_ns = due_ns;
}

/* Returns whether a program that runs has not acknowledged a GRANT. */
static bool somebody_owes(void)
{
	struct td_list *it;

	td_list_for_each (it, &w.node.clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_node);

		if (!client->failed && !client->process->stop.is &&
			!td_holding_is_heard(&client->device))
			return true;
	}
	return false;
}

static void node_step(void)
{
	w.told = false;
	w.due_ns = w.wakeup_ns = td_node_step(&w.node, w.now_ns);
	if (w.wakeup_ns <= w.now_ns)
		w.wakeup_ns = w.now_ns + TD_NS_PER_US;
	w.stepped = true;
	if (w.node.settle_ns <= w.now_ns && w.due_ns > w.now_ns + TD_NS_PER_S && somebody_owes())
		violated("an answer is awaited, and nobody looks whether it comes");
	step_again();
}

static void hear(struct line *line)
{
	struct td_msg msg;
	int r;

	step_again();
	if (!take(&line->up, &msg)) {
		trace("program %d has gone", line->program);
		if (line->process)
			td_node_gone(&w.node, line->process, w.now_ns);
		line->process = NULL;
		line->dropped = true;
		return;
	}
	if (msg.type == TD_MSG_TYPE_hello) {
		welcome(line, &msg.hello);
		return;
	}
	trace("heard: %s of program %d", td_proto_name(msg.type), line->program);
	if (msg.type == TD_MSG_TYPE_ping) {
		put(&line->down, &(struct td_msg){.type = TD_MSG_TYPE_pong});
		return;
	}
	r = td_node_message(&w.node, line->process, &msg, w.now_ns);
	if (r < 0)
		violated("%s of program %d: %d", td_proto_name(msg.type), line->program, r);
}
