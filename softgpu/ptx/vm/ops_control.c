/*
 * Control: guards, branches, calls, ends, clocks, and the stops at barriers and warp operations,
 * which the scheduler (block.c, warp.c) resolves.
 */
#include "ptx/vm/ops.h"
#include "ptx/vm/sched.h"

#define HANDLER(name)                                                                              \
	static const struct insn *name(struct thread *t, uint64_t *r, const struct insn *i)

/* The skipped instruction counts as one; helpers around it do not. */
static inline const struct insn *skip(struct thread *t, const struct insn *i)
{
	t->count -= (uint64_t)(i->imm.target - i) - 1;
	return i->imm.target;
}

HANDLER(guard)
{
	if (!r[i->a])
		return skip(t, i);
	t->count--;
	return i + 1;
}

HANDLER(guard_not)
{
	if (r[i->a])
		return skip(t, i);
	t->count--;
	return i + 1;
}

HANDLER(branch)
{
	(void)r;
	return sg_ptx_jump(t, i, i->imm.target);
}

HANDLER(branch_if)
{
	return r[i->a] ? sg_ptx_jump(t, i, i->imm.target) : i + 1;
}

HANDLER(branch_if_not)
{
	return r[i->a] ? i + 1 : sg_ptx_jump(t, i, i->imm.target);
}

HANDLER(call)
{
	(void)r;
	sg_ptx_stop_at(t, i);
	return sg_ptx_call(t, i);
}

HANDLER(call_at)
{
	sg_ptx_stop_at(t, i);
	return sg_ptx_call_at(t, r, i);
}

HANDLER(print)
{
	(void)r;
	return sg_ptx_print(t, i);
}

/* The instruction is followed by a table of branches. */
HANDLER(jump_to)
{
	uint64_t index = (uint32_t)r[i->a];

	if (index >= i->imm.u)
		return sg_ptx_fault(t, i, SG_PTX_INVALID_PC);
	return sg_ptx_jump(t, i, i[1 + index].imm.target);
}

HANDLER(ret)
{
	(void)r;
	sg_ptx_stop_at(t, i + 1);
	return sg_ptx_return(t);
}

HANDLER(leave)
{
	(void)r;
	sg_ptx_stop_at(t, i + 1);
	t->state = THREAD_DONE;
	return NULL;
}

HANDLER(trap)
{
	(void)r;
	return sg_ptx_fault(t, i, SG_PTX_TRAP);
}

HANDLER(failed_assert)
{
	(void)r;
	return sg_ptx_fault(t, i, SG_PTX_ASSERT);
}

HANDLER(refused)
{
	(void)r;
	return sg_ptx_fault(t, i, SG_PTX_UNSUPPORTED);
}

HANDLER(nop)
{
	(void)t, (void)r;
	return i + 1;
}

/* Lets other threads run meanwhile, and takes no time of the host. */
HANDLER(nanosleep)
{
	sg_ptx_stop_at(t, i + 1);
	t->extra_ps += (uint64_t)(uint32_t)r[i->a] * 1000;
	t->did_yield = true;
	return NULL;
}

#define SPIN_WINDOW   64
#define SPIN_FIRST_PS 8000u
#define SPIN_MOST_PS  1000000u

/* Picoseconds since the block started; ptx.h says how a spin skips ahead. */
static uint64_t read_clock(struct thread *t, const struct insn *i)
{
	uint64_t now = t->count + (uint64_t)(i - t->mark);

	if (!t->spin_ps || now - t->spin_count > SPIN_WINDOW) {
		t->spin_ps = SPIN_FIRST_PS;
	} else {
		t->extra_ps += t->spin_ps;
		t->spin_ps = t->spin_ps * 2 < SPIN_MOST_PS ? t->spin_ps * 2 : SPIN_MOST_PS;
	}
	t->spin_count = now;
	return now * t->run->launch->time.instr_ps + t->extra_ps;
}

static uint64_t read_cycles(struct thread *t, const struct insn *i)
{
	uint64_t ps = t->block->start_ns * 1000 + read_clock(t, i);

	return (uint64_t)((unsigned __int128)ps * t->run->launch->time.clock_mhz / 1000000);
}

static uint64_t read_timer(struct thread *t, const struct insn *i)
{
	return t->block->start_ns + read_clock(t, i) / 1000;
}

#define READ(name, expr)                                                                           \
	HANDLER(name)                                                                              \
	{                                                                                          \
		r[i->d] = (expr);                                                                  \
		return i + 1;                                                                      \
	}

READ(clock32, (uint32_t)read_cycles(t, i))
READ(clock_hi, read_cycles(t, i) >> 32)
READ(clock64, read_cycles(t, i))
READ(timer, read_timer(t, i))
READ(timer_lo, (uint32_t)read_timer(t, i))
READ(timer_hi, read_timer(t, i) >> 32)

/* Each thread runs alone: the only lane that is certainly converged is its own. */
READ(activemask, 1u << (t->index & 31))

HANDLER(barrier)
{
	sg_ptx_stop_at(t, i + 1);
	if (!sg_ptx_barrier_arrive(t, r, i))
		return sg_ptx_fault(t, i, SG_PTX_DEADLOCK);
	return NULL;
}

HANDLER(warp)
{
	sg_ptx_stop_at(t, i);
	t->wait = (uint32_t)r[i->imm.u >> 32];
	t->state = THREAD_WARP;
	return NULL;
}

op_fn sg_ptx_control_op(enum control_op op)
{
	static const op_fn table[CONTROL_N] = {
		[CONTROL_GUARD] = guard,
		[CONTROL_GUARD_NOT] = guard_not,
		[CONTROL_BRANCH] = branch,
		[CONTROL_BRANCH_IF] = branch_if,
		[CONTROL_BRANCH_IF_NOT] = branch_if_not,
		[CONTROL_JUMP] = jump_to,
		[CONTROL_CALL] = call,
		[CONTROL_CALL_AT] = call_at,
		[CONTROL_PRINT] = print,
		[CONTROL_RETURN] = ret,
		[CONTROL_EXIT] = leave,
		[CONTROL_TRAP] = trap,
		[CONTROL_ASSERT] = failed_assert,
		[CONTROL_NOP] = nop,
		[CONTROL_REFUSED] = refused,
		[CONTROL_NANOSLEEP] = nanosleep,
		[CONTROL_CLOCK32] = clock32,
		[CONTROL_CLOCK_HI] = clock_hi,
		[CONTROL_CLOCK64] = clock64,
		[CONTROL_TIMER] = timer,
		[CONTROL_TIMER_LO] = timer_lo,
		[CONTROL_TIMER_HI] = timer_hi,
		[CONTROL_ACTIVEMASK] = activemask,
		[CONTROL_BARRIER] = barrier,
		[CONTROL_WARP] = warp,
	};

	return table[op];
}
