/*
 * A launch: checks it, deals blocks to slots of virtual time, keeps the blocks that are alive
 * going in turn, and reports. One block at a time is alive unless blocks wait for each other: all
 * are in a cooperative launch; in others one more joins whenever a round of those alive ends
 * nothing, up to the slots.
 */
#include <errno.h>
#include <stdlib.h>

#include "ptx/vm/ops.h"
#include "ptx/vm/sched.h"

/* One more block is started after this many rounds in which no block has ended. */
#define PATIENCE_ROUNDS 64u

/*
 * Cooperative groups expect 288; a GPU keeps 1 KiB of each block's shared memory, for this and
 * more.
 */
#define RESERVED_SHARED_BYTES 512u

const char *sg_ptx_outcome_name(int outcome)
{
	switch (outcome) {
	case 0: return "success";
	case SG_PTX_ILLEGAL_ADDRESS: return "illegal address";
	case SG_PTX_MISALIGNED_ADDRESS: return "misaligned address";
	case SG_PTX_TRAP: return "trap";
	case SG_PTX_ASSERT: return "assertion failed";
	case SG_PTX_CANCELLED: return "cancelled";
	case SG_PTX_LIMIT: return "instruction limit reached";
	case SG_PTX_INVALID: return "invalid launch";
	case SG_PTX_COOPERATIVE_TOO_LARGE: return "cooperative launch too large";
	case SG_PTX_DEADLOCK: return "deadlock";
	case SG_PTX_STACK_OVERFLOW: return "stack overflow";
	case SG_PTX_UNSUPPORTED: return "unsupported instruction";
	case SG_PTX_INVALID_PC: return "invalid program counter";
	default: return outcome < 0 ? strerror(-outcome) : "unknown outcome";
	}
}

static uint32_t line_of(const struct thread *t, const struct insn *i)
{
	const struct context *c = t->context;
	const struct function *f = c->frames[c->frame_count - 1].function;

	return f->lines[i - f->insns];
}

const struct insn *sg_ptx_fault(struct thread *t, const struct insn *i, int outcome)
{
	struct run *run = t->run;
	const uint32_t *dim = run->launch->block;

	run->outcome = outcome;
	run->result->fault_line = line_of(t, i);
	memcpy(run->result->fault_block, t->block->id, sizeof(t->block->id));
	run->result->fault_thread[0] = t->index % dim[0];
	run->result->fault_thread[1] = t->index / dim[0] % dim[1];
	run->result->fault_thread[2] = t->index / dim[0] / dim[1];
	sg_ptx_stop_at(t, i);
	return NULL;
}

const struct insn *sg_ptx_fault_access(struct thread *t, const struct insn *i, int outcome,
	uint64_t address, enum sg_ptx_access access, uint32_t bytes)
{
	t->run->result->fault_address = address;
	t->run->result->fault_access = access;
	t->run->result->fault_bytes = bytes;
	return sg_ptx_fault(t, i, outcome);
}

/*
 * Orders the heap of slots: the slot that is free first is on top; among equals the lower number.
 */
static bool is_before(const struct slot_time *x, const struct slot_time *y)
{
	return x->free_ns < y->free_ns || (x->free_ns == y->free_ns && x->slot < y->slot);
}

static void slots_push(struct run *run, struct slot_time s)
{
	uint32_t at = run->slot_count++;

	for (; at && is_before(&s, &run->slots[(at - 1) / 2]); at = (at - 1) / 2)
		run->slots[at] = run->slots[(at - 1) / 2];
	run->slots[at] = s;
}

static struct slot_time slots_pop(struct run *run)
{
	struct slot_time top = run->slots[0], last = run->slots[--run->slot_count];
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < run->slot_count &&
			is_before(&run->slots[child + 1], &run->slots[child]))
			child++;
		if (child >= run->slot_count || !is_before(&run->slots[child], &last))
			break;
		run->slots[at] = run->slots[child];
		at = child;
	}
	run->slots[at] = last;
	return top;
}

/* The blocks of a launch: the next one to start, those that are alive, and spare structs. */
struct crowd {
	struct run *run;
	struct block **alive;
	uint32_t alive_count, most;
	struct block *spare;
	uint64_t next, total; /* linear block numbers */
	uint64_t end_ns;      /* of the latest block that is done */
};

static void block_free(struct block *b)
{
	if (!b)
		return;
	free(b->shared);
	free(b->threads);
	free(b);
}

static struct block *block_new(const struct run *run)
{
	struct block *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->shared = malloc(run->shared_bytes ? run->shared_bytes : 1);
	b->threads = malloc(run->thread_count * sizeof(*b->threads));
	if (b->shared && b->threads)
		return b;
	block_free(b);
	return NULL;
}

/* Starts the next block in the slot that is free first. */
static bool crowd_join(struct crowd *c)
{
	const struct sg_ptx_launch *launch = c->run->launch;
	const uint32_t *grid = launch->grid;
	uint32_t id[3] = {(uint32_t)(c->next % grid[0]), (uint32_t)(c->next / grid[0] % grid[1]),
		(uint32_t)(c->next / grid[0] / grid[1])};
	struct block *b = c->spare ? c->spare : block_new(c->run);
	struct slot_time slot;

	if (!b) {
		c->run->outcome = -ENOMEM;
		return false;
	}
	c->spare = NULL;
	slot = slots_pop(c->run);
	b->slot = slot.slot;
	b->start_ns = slot.free_ns + launch->time.block_launch_ns;
	sg_ptx_block_init(b, c->run, id);
	c->alive[c->alive_count++] = b;
	c->next++;
	return true;
}

static void crowd_leave(struct crowd *c, uint32_t at)
{
	struct block *b = c->alive[at];
	uint64_t end_ns = b->start_ns + (b->latest_ps + 999) / 1000;

	slots_push(c->run, (struct slot_time){end_ns, b->slot});
	if (end_ns > c->end_ns)
		c->end_ns = end_ns;
	memmove(&c->alive[at], &c->alive[at + 1], (c->alive_count - at - 1) * sizeof(c->alive[0]));
	c->alive_count--;
	if (c->spare)
		block_free(b);
	else
		c->spare = b;
}

/*
 * Runs each live block once. *ret_stuck: none of them could run. Returns false if the run ended
 * badly.
 */
static bool crowd_round(struct crowd *c, bool *ret_ended, bool *ret_stuck)
{
	*ret_ended = false;
	*ret_stuck = true;
	for (uint32_t at = 0; at < c->alive_count;) {
		switch (sg_ptx_block_run(c->alive[at])) {
		case BLOCK_DONE:
			crowd_leave(c, at);
			*ret_ended = true;
			*ret_stuck = false;
			continue;
		case BLOCK_RUNNING: *ret_stuck = false; break;
		case BLOCK_STUCK: break;
		case BLOCK_FAILED: return false;
		}
		at++;
	}
	return true;
}

/* Reports threads that wait for each other without end. A real GPU would hang. */
static void report_deadlock(struct crowd *c)
{
	struct block *b = c->alive[0];

	for (uint32_t n = 0; n < b->thread_count; n++) {
		struct thread *t = &b->threads[n];

		if (t->state == THREAD_BARRIER || t->state == THREAD_WARP) {
			sg_ptx_fault(
				t, t->state == THREAD_WARP ? t->pc : t->pc - 1, SG_PTX_DEADLOCK);
			return;
		}
	}
	c->run->outcome = SG_PTX_DEADLOCK;
}

static void crowd_run(struct crowd *c)
{
	uint32_t wanted = c->run->launch->cooperative ? c->most : 1, patience = PATIENCE_ROUNDS;
	bool ended, stuck;

	while (c->next < c->total || c->alive_count) {
		while (c->alive_count < wanted && c->next < c->total) {
			if (!crowd_join(c))
				return;
		}
		if (!crowd_round(c, &ended, &stuck))
			return;
		if (stuck) {
			report_deadlock(c);
			return;
		}
		if (ended) {
			patience = PATIENCE_ROUNDS;
		} else if (!--patience) {
			patience = PATIENCE_ROUNDS;
			wanted += wanted < c->most;
		}
	}
}

static int crowd_start(struct run *run, uint64_t total)
{
	const struct sg_ptx_time *time = &run->launch->time;
	struct crowd c = {.run = run, .total = total};
	uint32_t slots = run->slot_count;

	c.most = total < slots ? (uint32_t)total : slots;
	c.alive = calloc(c.most, sizeof(*c.alive));
	run->slots = calloc(slots, sizeof(*run->slots));
	if (!c.alive || !run->slots) {
		run->outcome = -ENOMEM;
	} else {
		for (uint32_t n = 0; n < slots; n++)
			run->slots[n] = (struct slot_time){time->start_ns, n};
		crowd_run(&c);
		run->result->makespan_ns =
			c.end_ns > time->start_ns ? c.end_ns - time->start_ns : 0;
	}
	for (uint32_t n = 0; n < c.alive_count; n++) {
		for (uint32_t k = 0; k < c.alive[n]->thread_count; k++)
			sg_ptx_thread_release(&c.alive[n]->threads[k]);
		block_free(c.alive[n]);
	}
	block_free(c.spare);
	free(c.alive);
	free(run->slots);
	return run->outcome;
}

static bool is_bound(const struct sg_ptx_module *m)
{
	for (uint32_t n = 0; n < m->variable_count; n++) {
		if (!m->variables[n]->is_bound)
			return false;
	}
	return true;
}

/* Returns 0 or SG_PTX_INVALID. *ret_blocks is the number of blocks of the grid. */
static int check(const struct sg_ptx_launch *l, uint32_t *ret_threads, uint64_t *ret_blocks)
{
	uint64_t threads = 1, blocks = 1;

	for (unsigned n = 0; n < 3; n++) {
		if (!l->grid[n] || !l->block[n] || l->block[n] > SG_PTX_MAX_THREADS)
			return SG_PTX_INVALID;
		threads *= l->block[n];
		blocks *= n && l->grid[n] > 65535 ? 0 : l->grid[n];
	}
	if (!blocks || l->grid[0] > INT32_MAX || threads > l->function->max_threads ||
		!l->time.slots || !is_bound(l->module))
		return SG_PTX_INVALID;
	if (l->dynamic_shared_bytes > SG_PTX_MAX_SHARED_BYTES ||
		((l->function->shared_bytes + 15) & ~15u) + l->dynamic_shared_bytes >
			SG_PTX_MAX_SHARED_BYTES)
		return SG_PTX_INVALID;
	*ret_threads = (uint32_t)threads;
	*ret_blocks = blocks;
	return 0;
}

int sg_ptx_run(const struct sg_ptx_launch *launch, struct sg_ptx_result *ret)
{
	uint32_t threads;
	uint64_t blocks;
	struct run *run;
	int r;

	*ret = (struct sg_ptx_result){0};
	r = check(launch, &threads, &blocks);
	if (r)
		return r;
	if (launch->cooperative && blocks > launch->time.slots)
		return SG_PTX_COOPERATIVE_TOO_LARGE;
	run = calloc(1, sizeof(*run));
	if (!run)
		return -ENOMEM;
	run->launch = launch;
	run->function = (const struct function *)launch->function;
	run->result = ret;
	run->grid_barrier[0] = sizeof(run->grid_barrier);
	run->thread_count = threads;
	run->slot_count = launch->time.slots;
	run->dynamic_shared_at = (launch->function->shared_bytes + 15) & ~15u;
	run->shared_bytes = run->dynamic_shared_at + launch->dynamic_shared_bytes;
	if (launch->module->uses_reserved) {
		run->reserved_shared_at = (run->shared_bytes + 15) & ~15u;
		run->shared_bytes = run->reserved_shared_at + RESERVED_SHARED_BYTES;
	}
	r = crowd_start(run, blocks);
	sg_ptx_contexts_free(run);
	free(run);
	return r;
}
