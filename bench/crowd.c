/*
 * The cost of many clients of one GPU in the daemon: the node's own code with programs that answer
 * at once, without sockets, memory to move or a clock. Rows: CPU time, for each number of clients,
 * of one that attaches (from HELLO until nothing is left to do), of one that launches first, and of
 * a hand-over (from the end of a turn until nothing is left to do); and the node's steps in each.
 *
 * usage: crowd CLIENTS...
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "bench/row.h"
#include "daemon/model/node.h"

#define CLIENTS_MAX 1024u
#define TIMES       200u
#define MIB         (1ull << 20)

/* A program. It does what it was told when it is its turn: the daemon serves it then. */
struct program {
	struct td_process *process;
	uint32_t word, seq;
	uint64_t limit_bytes;
	bool told, opening, waits; /* waits: among those that have something to say */
};

static struct td_node node;
static struct program programs[CLIENTS_MAX], *waiting[CLIENTS_MAX];
static unsigned waiting_count, steps, sent;
static uint64_t now_ns;

/* Returns the CPU time of this process: others that run meanwhile do not count. */
static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * TD_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void wait_for_turn(struct program *program)
{
	if (!program->waits)
		waiting[waiting_count++] = program;
	program->waits = true;
}

static void take(void *peer, const struct td_msg *msg)
{
	struct program *program = peer;

	sent++;
	if (msg->type != TD_MSG_TYPE_grant || msg->grant.slot == TD_SLOT_HOST)
		return;
	program->told = true;
	program->seq = msg->grant.seq;
	program->limit_bytes = msg->grant.device_bytes;
	program->opening = msg->grant.gate != TD_GATE_CLOSED;
	wait_for_turn(program);
}

static void take_word(void *peer, uint32_t word, const struct td_pacing *pacing)
{
	struct program *program = peer;

	(void)pacing;
	if (program->process && word & TD_WORD_CLOSED && !(program->word & TD_WORD_CLOSED))
		wait_for_turn(program);
	program->word = word;
}

static void ignore_event(void *arg, const struct td_event *event)
{
	(void)arg;
	(void)event;
}

static void say(struct program *program, struct td_msg msg)
{
	if (td_node_message(&node, program->process, &msg, now_ns))
		abort();
}

static void report(struct program *program)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_used};

	msg.used.acked_seq = program->seq;
	msg.used.device_bytes = msg.used.total_bytes = MIB;
	say(program, msg);
}

/* Sends all that the program's agent does once it has read its messages. */
static void act(struct program *program)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_drained};

	if (program->process->phase == TD_PHASE_DRAINING) {
		msg.drained.word = program->word;
		msg.drained.launches = 1;
		say(program, msg);
	}
	if (!program->told)
		return;
	program->told = false;
	report(program);
	if (!program->opening || program->limit_bytes < MIB)
		return;
	msg = (struct td_msg){.type = TD_MSG_TYPE_ready};
	msg.ready.seq = program->seq;
	say(program, msg);
}

/* Serves who has something to say, a step after each, until nobody has. */
static uint64_t settle(void)
{
	uint64_t wakeup;

	for (;;) {
		steps++;
		wakeup = td_node_step(&node, now_ns);
		if (wakeup <= now_ns)
			continue;
		if (!waiting_count)
			return wakeup;
		waiting_count--;
		waiting[waiting_count]->waits = false;
		act(waiting[waiting_count]);
	}
}

static void attach(struct program *program, unsigned i)
{
	struct td_msg_hello hello = {.weight = 1, .backend = TD_BACKEND_SWAP};
	struct td_msg msg = {.type = TD_MSG_TYPE_attach};

	snprintf(hello.job, sizeof(hello.job), "%u.bench", i);
	program->process =
		td_node_hello(&node, program, 100 + (int)i, td_identity_local(0), &hello, now_ns);
	if (!program->process)
		abort();
	(void)settle();
	memset(msg.attach.gpu, 1, sizeof(msg.attach.gpu));
	msg.attach.total_bytes = 80ull << 30;
	say(program, msg);
	(void)settle();
	report(program);
	(void)settle();
}

static void set(const char *key, const char *value)
{
	if (td_options_set(&node.options, key, value, NULL))
		abort();
	td_node_options_changed(&node, now_ns, key);
}

struct figure {
	double us[TIMES], steps[TIMES], sent[TIMES];
	size_t count;
};

static uint64_t began_ns;

static void begin(void)
{
	steps = sent = 0;
	began_ns = cpu_ns();
}

static void end(struct figure *figure)
{
	if (figure->count == TIMES)
		return;
	figure->us[figure->count] = (double)(cpu_ns() - began_ns) / 1e3;
	figure->steps[figure->count] = steps;
	figure->sent[figure->count++] = sent;
}

static void print(unsigned clients, const char *what, struct figure *figure)
{
	char text[96];

	snprintf(text, sizeof(text), "%u clients: %s", clients, what);
	bench_row(text, "us", figure->us, figure->count);
	snprintf(text, sizeof(text), "%u clients: %s, steps", clients, what);
	bench_row(text, "", figure->steps, figure->count);
	snprintf(text, sizeof(text), "%u clients: %s, messages sent", clients, what);
	bench_row(text, "", figure->sent, figure->count);
	figure->count = 0;
}

static void measure(unsigned clients)
{
	const struct td_node_io io = {.send = take, .gate = take_word, .event = ignore_event};
	static struct figure attaches, launches, handovers;
	uint64_t wakeup = 0;

	memset(programs, 0, sizeof(programs));
	now_ns = 1000 * TD_NS_PER_S;
	if (td_node_init(&node, &io))
		abort();
	set("policy", "nvshare");
	set("quantum", "10ms");
	for (unsigned i = 0; i < clients; i++) {
		begin();
		attach(&programs[i], i);
		if (i + TIMES >= clients)
			end(&attaches);
	}
	for (unsigned i = 0; i < clients; i++) {
		begin();
		say(&programs[i], (struct td_msg){.type = TD_MSG_TYPE_want});
		wakeup = settle();
		if (i + TIMES >= clients)
			end(&launches);
	}
	for (unsigned i = 0; i < TIMES && wakeup != TD_NEVER; i++) {
		now_ns = wakeup > now_ns ? wakeup : now_ns;
		begin();
		wakeup = settle();
		end(&handovers);
	}
	if (node.client_count != clients) {
		fprintf(stderr, "crowd: %u of %u programs are clients\n", node.client_count,
			clients);
		exit(1);
	}
	print(clients, "one attaches", &attaches);
	print(clients, "one launches first", &launches);
	print(clients, "a hand-over", &handovers);
	td_node_deinit(&node);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int clients = atoi(argv[i]);

		if (clients < 1 || (unsigned)clients > CLIENTS_MAX) {
			fprintf(stderr, "usage: crowd CLIENTS... (1 to %u)\n", CLIENTS_MAX);
			return 2;
		}
		measure((unsigned)clients);
	}
	return 0;
}
