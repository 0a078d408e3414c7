/*
 * Runs a block. Its threads run one after another, warp by warp, each until its next barrier, warp
 * operation or sleep, or until the end of its slice. The states of a thread are:
 *
 *   NEW -> READY <-> BARRIER, WARP (waiting) ; READY -> FRAME -> READY (a call) ; READY -> DONE
 */
#include <errno.h>

#include "ptx/vm/ops.h"
#include "ptx/vm/sched.h"

#define SLICE_INSTRUCTIONS 16384u

void sg_ptx_block_init(struct block *b, struct run *run, const uint32_t id[3])
{
	memcpy(b->id, id, sizeof(b->id));
	b->live = b->thread_count = run->thread_count;
	b->latest_ps = 0;
	memset(b->barriers, 0, sizeof(b->barriers));
	memset(b->shared, 0, run->shared_bytes);
	for (uint32_t n = 0; n < b->thread_count; n++)
		b->threads[n] = (struct thread){.run = run, .block = b, .index = n};
}

static bool is_waiting_at(const struct thread *t, uint32_t barrier)
{
	return t->state == THREAD_BARRIER && t->wait == barrier;
}

static uint64_t vote_result(enum barrier_op op, const struct barrier *barrier)
{
	switch (op) {
	case BARRIER_POPC: return barrier->votes;
	case BARRIER_AND: return barrier->votes == barrier->arrived;
	case BARRIER_OR: return barrier->votes != 0;
	default: return 0;
	}
}

/* Lets go of everyone at the barrier when enough have arrived. */
static bool release_barrier(struct block *b, uint32_t number)
{
	struct barrier *barrier = &b->barriers[number];
	uint32_t expected = barrier->expected ? barrier->expected : b->live;

	if (!barrier->arrived || barrier->arrived < expected)
		return false;
	for (uint32_t n = 0; n < b->thread_count; n++) {
		struct thread *t = &b->threads[n];
		const struct insn *i;

		if (!is_waiting_at(t, number))
			continue;
		i = t->pc - 1;
		sg_ptx_thread_registers(t)[i->d] = vote_result((enum barrier_op)i->imm.u, barrier);
		sg_ptx_thread_advance(t, barrier->latest_ps);
		t->state = THREAD_READY;
	}
	*barrier = (struct barrier){0};
	return true;
}

bool sg_ptx_barrier_arrive(struct thread *t, const uint64_t *r, const struct insn *i)
{
	enum barrier_op op = (enum barrier_op)i->imm.u;
	uint32_t number = (uint32_t)r[i->a], expected = (uint32_t)r[i->b];
	struct barrier *barrier;

	if (number >= BARRIER_COUNT || expected % 32)
		return false;
	barrier = &t->block->barriers[number];
	if (barrier->arrived && barrier->expected != expected)
		return false;
	barrier->expected = expected;
	barrier->arrived++;
	barrier->votes += r[i->c] != 0;
	if (sg_ptx_thread_ps(t) > barrier->latest_ps)
		barrier->latest_ps = sg_ptx_thread_ps(t);
	if (op == BARRIER_ARRIVE) {
		t->did_yield = true;
	} else {
		t->wait = number;
		t->state = THREAD_BARRIER;
	}
	release_barrier(t->block, number);
	return true;
}

/* Ends a thread. Threads that waited for it go on without it. */
static void finish_thread(struct thread *t)
{
	struct block *b = t->block;
	uint32_t first = t->index & ~31u;

	if (sg_ptx_thread_ps(t) > b->latest_ps)
		b->latest_ps = sg_ptx_thread_ps(t);
	b->live--;
	sg_ptx_thread_release(t);
	if (!b->live)
		return;
	for (uint32_t n = 0; n < BARRIER_COUNT; n++) {
		if (b->barriers[n].arrived)
			release_barrier(b, n);
	}
	for (uint32_t n = first; n < first + 32 && n < b->thread_count; n++) {
		if (b->threads[n].state == THREAD_WARP)
			sg_ptx_warp_try(&b->threads[n]);
	}
}

/*
 * Returns the number of instructions that the thread may run before others. Ends the run when it
 * may not run at all.
 */
static uint64_t slice_of(struct run *run)
{
	uint64_t most = run->launch->max_instructions, spent = run->result->instructions;

	if (run->launch->cancel && __atomic_load_n(run->launch->cancel, __ATOMIC_RELAXED))
		run->outcome = SG_PTX_CANCELLED;
	else if (most && spent >= most)
		run->outcome = SG_PTX_LIMIT;
	return most && most - spent < SLICE_INSTRUCTIONS ? most - spent : SLICE_INSTRUCTIONS;
}

/* Runs the thread until it stops for good or for others. */
static void run_thread(struct thread *t)
{
	uint64_t before = t->count;

	t->slice_end = t->count + slice_of(t->run);
	if (t->run->outcome)
		return;
	t->did_yield = false;
	do {
		uint64_t *r = sg_ptx_thread_registers(t);
		const struct insn *i = t->pc;

		t->state = THREAD_READY;
		while (i)
			i = i->fn(t, r, i);
	} while (t->state == THREAD_FRAME && !t->did_yield && !t->run->outcome);
	t->run->result->instructions += t->count - before;
}

/* Runs the thread for one slice. Returns whether it ran. */
static bool step_thread(struct thread *t)
{
	if (t->state == THREAD_NEW) {
		if (!sg_ptx_thread_start(t)) {
			t->run->outcome = -ENOMEM;
			return false;
		}
	} else if (t->state != THREAD_READY && t->state != THREAD_FRAME) {
		return false;
	}
	run_thread(t);
	if (t->run->outcome)
		return true;
	if (t->state == THREAD_DONE)
		finish_thread(t);
	else if (t->state == THREAD_WARP)
		sg_ptx_warp_try(t);
	return true;
}

/*
 * Lanes that only wait for each other run again at once, while their registers are still in the
 * cache.
 */
static bool run_warp(struct block *b, uint32_t first)
{
	uint32_t end = first + 32 < b->thread_count ? first + 32 : b->thread_count;
	bool did_run = false, again;

	do {
		again = false;
		for (uint32_t n = first; n < end; n++) {
			struct thread *t = &b->threads[n];

			if (!step_thread(t))
				continue;
			if (t->run->outcome)
				return true;
			did_run = true;
			again |= !t->did_yield && t->state != THREAD_DONE;
		}
	} while (again);
	return did_run;
}

enum block_state sg_ptx_block_run(struct block *b)
{
	bool did_run = false;

	for (uint32_t first = 0; first < b->thread_count; first += 32) {
		did_run |= run_warp(b, first);
		if (b->threads[0].run->outcome)
			return BLOCK_FAILED;
	}
	if (!b->live)
		return BLOCK_DONE;
	return did_run ? BLOCK_RUNNING : BLOCK_STUCK;
}
