/*
 * The world of the model of hard memory limits (test_node_quota.c): its clock, its GPUs, programs
 * with their threads, and connections. Header only: one user.
 */
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/err.h"
#include "base/time.h"
#include "daemon/memory/capacity.h"
#include "daemon/memory/overhead.h"
#include "daemon/memory/quota.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "preload/base/backend.h"
#include "proto/proto.h"
#include "test.h"

#include "unit/daemon/memory/quota/machine.h"

#define MIB         (1ull << 20)
#define MS          TD_NS_PER_MS
#define GPU_BYTES   (96 * MIB)
#define PROGRAMS    20
#define JOBS        5
#define JOB_MOST    4
#define THREADS     3 /* the agent's and two of the program's */
#define STACK_BYTES (256u << 10)
#define NOISE_TURNS 6000
#define ALL_TURNS   3000000
/* No message is under way for longer; on a machine that is very busy, for one seed of eight. */
#define DELAY_NS      (200 * MS)
#define LONG_DELAY_NS (TD_NS_PER_S)
/*
 * The most messages that a program may have to read at once; more is a storm. The daemon drops a
 * program that leaves 4 MiB unread.
 */
#define UNREAD_MOST 2000
/* By then everybody has ended: some turns of each, and the longest drain. */
#define END_NS (900 * TD_NS_PER_S)
/* Programs of seeds from here on have unified memory, too. Earlier seeds keep their programs. */
#define FIRST_WITH_PAGED 900000

struct packet {
	struct packet *next;
	struct td_msg msg;
	uint64_t sent_ns;
};

struct queue {
	struct packet *first, **last;
	unsigned count;
};

/* One connection: outlives its program until the daemon has read what it said. */
struct line {
	struct line *next;
	struct td_process *process;
	struct queue up, down; /* to the daemon; to the program */
	unsigned arrived;      /* of those that are under way down: can be read */
	bool hung_up, dropped; /* by the program; by the daemon */
	bool mapped;
	uint32_t word;
	struct td_pacing pacing;
	uint64_t others[16];
	int program;
	unsigned slow;     /* of 16 */
	uint64_t stops_ns; /* the daemon hears nothing of it before */
};

struct fiber {
	ucontext_t context;
	void *stack;
	bool alive;
	int program;
	unsigned thread;
	void *(*run)(void *);
	uint64_t until_ns, ready_ns;
	const _Atomic uint32_t *word;
	uint32_t value;
	bool listens;
	int gpu;
};

struct program {
	const struct quota_program *code;
	bool alive, rung, leaving;
	unsigned job, threads, said;
	uint8_t backend;
	uint64_t has[QUOTA_GPUS], contexts[QUOTA_GPUS], paged[QUOTA_GPUS];
	struct line *line;
	struct fiber fibers[THREADS];
};

struct job {
	char name[8];
	uint8_t class, backend;
	bool refuses, paused;
	char mem[16], soft[16]; /* as started */
	/*
	 * The most that it may have by what it was told, and whether that is unknown because a
	 * daemon was lost.
	 */
	uint64_t bound[QUOTA_GPUS], doubted_ns;
	bool loose;
};

static struct {
	struct td_node node;
	bool up;
	uint64_t now_ns, wakeup_ns, due_ns, random, delay_ns;
	uint64_t summed[QUOTA_GPUS]; /* what all are charged, before */
	bool stepped;
	bool told;  /* the last step sent a GRANT: its answer causes the next one */
	bool again; /* a step is made that must do nothing */
	struct program programs[PROGRAMS];
	struct job jobs[JOBS];
	struct line *lines;
	uint64_t used[QUOTA_GPUS];
	struct fiber *running;
	ucontext_t main;
	unsigned born, turns, ops;
	bool noise, trace;
	/* The actions of the program's thread in order; NULL: as the seed has them. */
	const struct quota_op *script;
	unsigned script_count;
	uint64_t seed;
	char what[512];
} w;

static uint64_t next_random(void)
{
	uint64_t x = w.random += 0x9e3779b97f4a7c15ull; /* splitmix64 */

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static unsigned below(unsigned n)
{
	return (unsigned)((next_random() >> 32) * n >> 32);
}

__attribute__((format(printf, 1, 2))) static void trace(const char *format, ...)
{
	va_list args;

	if (!w.trace)
		return;
	printf("# %6u %9.3f ms ", w.turns, (double)(w.now_ns - TD_NS_PER_S) / 1e6);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

static void describe(void)
{
	struct td_list *it;

	td_list_for_each (it, &w.node.clients) {
		const struct td_client *c = td_container_of(it, struct td_client, of_node);
		const struct line *line = c->process->peer;
		const struct program *p = &w.programs[line->program];

		printf("#   %s soft %s%s need %llu%s, soft %llu;", c->process->job->settings.mem,
			c->process->job->settings.mem_soft, c->spills ? " spills" : "",
			(unsigned long long)c->need_bytes >> 10,
			c->asked != TD_ASKED_MOVES ? " fixed" : "",
			(unsigned long long)c->soft_bytes >> 10);
		printf("program %d job %s gpu %u backend %u phase %d%s%s: has %llu, says %llu "
		       "resident %llu host %llu fixed %llu, limit %llu believed %llu/%llu spill %d "
		       "seq %u/%u ready %d%s grant %d/%llu\n",
			line->program, c->process->job->name, w.node.gpus[c->gpu].uuid[0] - 1,
			c->process->backend, c->process->phase, c->process->wants ? " wants" : "",
			c->process->job->settings.paused ? " paused" : "",
			(unsigned long long)(p->has[w.node.gpus[c->gpu].uuid[0] - 1] >> 10),
			(unsigned long long)(c->total.used >> 10),
			(unsigned long long)(c->device.used >> 10),
			(unsigned long long)(c->host_bytes >> 10),
			(unsigned long long)(c->fixed_bytes >> 10),
			(unsigned long long)(c->device.told >> 10),
			(unsigned long long)(c->device.believed >> 10),
			(unsigned long long)(c->total.believed >> 10), c->told_gate,
			c->device.acked, c->device.seq, c->ready, c->needs ? " needs" : "",
			c->grant.gate, (unsigned long long)(c->grant.limit_bytes >> 10));
	}
	for (unsigned i = 0; i < w.node.gpu_count; i++)
		printf("#   GPU %u: %llu KiB used, capacity %llu reserve %llu shortage %llu\n", i,
			(unsigned long long)(w.used[i] >> 10),
			(unsigned long long)(w.node.gpus[i].capacity_bytes >> 10),
			(unsigned long long)(w.node.gpus[i].reserve_bytes >> 10),
			(unsigned long long)(w.node.gpus[i].shortage_bytes >> 10));
}

__attribute__((noreturn, format(printf, 1, 2))) static void violated(const char *format, ...)
{
	va_list args;

	printf("# seed %llu, turn %u, policy %s: ", (unsigned long long)w.seed, w.turns,
		w.up ? w.node.policy->name : "-");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	describe();
	fflush(stdout);
	_exit(1);
}

/* -- queues -- */

static void put(struct queue *q, const struct td_msg *msg)
{
	struct packet *p = malloc(sizeof(*p));

	*p = (struct packet){NULL, *msg, w.now_ns};
	if (!q->first)
		q->last = &q->first;
	*q->last = p;
	q->last = &p->next;
	q->count++;
}

static bool take(struct queue *q, struct td_msg *ret)
{
	struct packet *p = q->first;

	if (!p)
		return false;
	q->first = p->next;
	if (!q->first)
		q->last = &q->first;
	q->count--;
	*ret = p->msg;
	free(p);
	return true;
}

static void clear(struct queue *q)
{
	struct td_msg msg;

	while (take(q, &msg))
		;
}

/* -- fibers -- */

static void give_way(void)
{
	struct fiber *f = w.running;

	f->ready_ns = w.now_ns;
	swapcontext(&f->context, &w.main);
}

static void fiber_main(void)
{
	struct fiber *f = w.running;

	if (f->run)
		f->run(NULL);
	else
		w.programs[f->program].code->thread(f->thread);
	f->alive = false;
	give_way();
	abort();
}

static void start(struct program *p, unsigned thread, void *(*run)(void *))
{
	struct fiber *f = &p->fibers[thread];

	*f = (struct fiber){.alive = true,
		.program = (int)(p - w.programs),
		.thread = thread,
		.run = run,
		.ready_ns = w.now_ns,
		.gpu = -1,
		.stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
	getcontext(&f->context);
	f->context.uc_stack.ss_sp = f->stack;
	f->context.uc_stack.ss_size = STACK_BYTES;
	f->context.uc_link = NULL;
	makecontext(&f->context, fiber_main, 0);
}

static bool can_read(const struct program *p)
{
	const struct line *line = p->line;

	return line && (line->arrived || (line->dropped && !line->down.count));
}

/* UINT64_MAX: only something else can wake it. */
static uint64_t wakes_ns(const struct fiber *f)
{
	const struct program *p = &w.programs[f->program];

	if (f->word && atomic_load(f->word) != f->value)
		return 0;
	if (f->listens && (p->rung || can_read(p)))
		return 0;
	/* The end of a drain rings. */
	if (f->listens && p->code->busy_ns() > w.now_ns && p->code->busy_ns() < f->until_ns)
		return p->code->busy_ns();
	return f->until_ns;
}

static void resume(struct fiber *f)
{
	struct program *p = &w.programs[f->program];

	if (f->listens)
		p->rung = false;
	f->until_ns = 0;
	f->word = NULL;
	f->listens = false;
	w.running = f;
	swapcontext(&w.main, &f->context);
	w.running = NULL;
	if (!f->alive) {
		munmap(f->stack, STACK_BYTES);
		f->stack = NULL;
	}
}

/* -- what the programs see -- */

static uint64_t world_now(void)
{
	return w.now_ns;
}

static void world_wait(uint64_t until_ns, const _Atomic uint32_t *word, uint32_t value)
{
	w.running->until_ns = until_ns;
	w.running->word = word;
	w.running->value = value;
	give_way();
}

static void world_listen(int program, uint64_t until_ns)
{
	(void)program;
	w.running->listens = true;
	world_wait(until_ns, NULL, 0);
}

static void world_ring(int program)
{
	w.programs[program].rung = true;
}

static void world_preempt(void)
{
	if (below(8) == 0)
		world_wait(0, NULL, 0);
}

static int *world_current(void)
{
	return &w.running->gpu;
}

static uint64_t *account(int program, int gpu, enum quota_memory memory)
{
	struct program *p = &w.programs[program];

	switch (memory) {
	case QUOTA_OF_CONTEXT: return &p->contexts[gpu];
	case QUOTA_PAGED: return &p->paged[gpu];
	default: return &p->has[gpu];
	}
}

static int world_take(int program, int gpu, uint64_t bytes, enum quota_memory memory)
{
	if (memory != QUOTA_PAGED) {
		if (w.used[gpu] + bytes > GPU_BYTES)
			return -1;
		w.used[gpu] += bytes;
	}
	*account(program, gpu, memory) += bytes;
	return 0;
}

static void world_give(int program, int gpu, uint64_t bytes, enum quota_memory memory)
{
	if (memory != QUOTA_PAGED)
		w.used[gpu] -= bytes;
	*account(program, gpu, memory) -= bytes;
}

static uint64_t world_used(int gpu)
{
	return w.used[gpu];
}

static int world_connect(int program)
{
	struct program *p = &w.programs[program];
	struct line *line;

	if (!w.up)
		return -ECONNREFUSED;
	line = calloc(1, sizeof(*line));
	line->program = program;
	line->slow = below(3) ? below(8) : below(16);
	if (w.delay_ns == LONG_DELAY_NS && below(2))
		line->stops_ns = w.now_ns + (uint64_t)below(2500) * MS;
	line->next = w.lines;
	w.lines = line;
	p->line = line;
	trace("program %d connects", program);
	return 0;
}

static void hang_up(struct program *p)
{
	if (!p->line)
		return;
	p->line->hung_up = true;
	clear(&p->line->down);
	p->line->arrived = 0;
	p->line = NULL;
}

static void world_hang_up(int program)
{
	const struct line *line = w.programs[program].line;

	if (line && !line->dropped && w.up)
		violated("program %d has hung up", program);
	hang_up(&w.programs[program]);
}

static int world_send(int program, const struct td_msg *msg)
{
	struct line *line = w.programs[program].line;

	if (!line || line->dropped)
		return -EPIPE;
	if (msg->type == TD_MSG_TYPE_used)
		trace("program %d: memory slot %u seq %u demanded %llu resident %llu host %llu "
		      "fixed %llu",
			program, msg->used.slot, msg->used.acked_seq,
			(unsigned long long)msg->used.total_bytes >> 10,
			(unsigned long long)msg->used.device_bytes >> 10,
			(unsigned long long)msg->used.host_bytes >> 10,
			(unsigned long long)msg->used.fixed_bytes >> 10);
	else
		trace("program %d: %s %llu", program, td_proto_name(msg->type),
			msg->type == TD_MSG_TYPE_ask ? (unsigned long long)msg->ask.bytes >> 10
						     : 0);
	put(&line->up, msg);
	return 0;
}

static int world_receive(int program, struct td_msg *ret)
{
	struct line *line = w.programs[program].line;

	if (!line)
		return -EBADF;
	if (line->arrived) {
		line->arrived--;
		(void)take(&line->down, ret);
		if (ret->type == TD_MSG_TYPE_grant)
			trace("program %d gets grant slot %u seq %u gate %u device %llu total %llu "
			      "verdict %u",
				program, ret->grant.slot, ret->grant.seq, ret->grant.gate,
				(unsigned long long)ret->grant.device_bytes >> 10,
				(unsigned long long)ret->grant.total_bytes >> 10,
				ret->grant.verdict);
		else
			trace("program %d gets %s", program, td_proto_name(ret->type));
		return 0;
	}
	return line->dropped && !line->down.count ? -ECONNRESET : -EAGAIN;
}

static void world_map(int program, bool mapped)
{
	struct program *p = &w.programs[program];

	if (p->line)
		p->line->mapped = mapped;
	if (!mapped || !p->line)
		return;
	p->code->page(p->line->word);
	for (uint32_t i = 0; i < 16; i++)
		p->code->others(i, p->line->others[i]);
}

static void world_spawn(int program, void *(*run)(void *))
{
	start(&w.programs[program], 0, run);
}

static struct quota_op world_next(int program, unsigned thread, unsigned has)
{
	struct program *p = &w.programs[program];
	struct quota_op op = {QUOTA_SLEEP, 0, 0, 0, 0};

	w.ops++;
	if (w.script)
		return p->said < w.script_count ? w.script[p->said++]
						: (struct quota_op){.what = QUOTA_SLEEP, .ns = MS};
	if (p->fibers[thread].gpu < 0 && (w.noise || below(2))) {
		op.what = QUOTA_USE;
		op.gpu = below(3) ? 0 : 1;
		if (below(4))
			return op;
	}
	if (!w.noise || (p->leaving && below(4) == 0)) {
		op.what = has ? below(3) ? QUOTA_FREE : QUOTA_LAUNCH : QUOTA_END;
		op.ns = MS;
		return op;
	}
	op.index = below(64);
	switch (below(10)) {
	case 0:
	case 1: op.what = QUOTA_ALLOCATE; break;
	case 2:
		op.what = below(2) ? QUOTA_ALLOCATE : QUOTA_CREATE;
		if (w.seed >= FIRST_WITH_PAGED && below(2))
			op.what = QUOTA_MANAGE;
		break;
	case 3: op.what = QUOTA_FREE; break;
	case 4:
	case 5:
	case 6: op.what = QUOTA_LAUNCH; break;
	case 7: op.what = below(10) ? QUOTA_LAUNCH : QUOTA_END; break;
	default: break;
	}
	op.bytes = below(4) == 0 ? 4096 * (1 + below(64)) : (uint64_t)(1 + below(12)) * MIB;
	op.ns = below(20) == 0 ? (uint64_t)below(300) * MS : (uint64_t)below(4000) * TD_NS_PER_US;
	return op;
}

static void world_broken(int program, const char *what)
{
	violated("program %d: %s", program, what);
}

static const struct quota_world world = {.now_ns = world_now,
	.wait = world_wait,
	.listen = world_listen,
	.ring = world_ring,
	.preempt = world_preempt,
	.current = world_current,
	.take = world_take,
	.give = world_give,
	.used = world_used,
	.gpu_bytes = GPU_BYTES,
	.connect = world_connect,
	.hang_up = world_hang_up,
	.send = world_send,
	.receive = world_receive,
	.map = world_map,
	.spawn = world_spawn,
	.next = world_next,
	.broken = world_broken};
