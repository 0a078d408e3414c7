/*
 * Warp operations: shfl, vote, match, redux, bar.warp. A lane stops at one with the mask of lanes
 * that take part; the last of them to arrive computes every lane's result. Lanes that have exited
 * do not take part.
 */
#include "ptx/vm/ops.h"
#include "ptx/vm/sched.h"

#define LANES 32u

struct lanes {
	struct thread *thread[LANES];
	const struct insn *insn[LANES];
	uint64_t *r[LANES];
	uint64_t a[LANES];
	uint32_t mask;
};

static enum warp_op op_of(const struct insn *i)
{
	return (enum warp_op)(i->imm.u & 0xff);
}

/* The lanes of t's mask that are alive; 0: not all there yet. Lanes run in ascending order, so that
 * looking at the last one first mostly ends it. */
static uint32_t arrived(const struct thread *t)
{
	const struct thread *first = t - (t->index & (LANES - 1));
	uint32_t left = t->block->thread_count - first->index, mask = t->wait, alive = 0;
	enum warp_op op = op_of(t->pc);

	for (uint32_t lane = left < LANES ? left : LANES; lane--;) {
		const struct thread *q = &first[lane];

		if (!(mask >> lane & 1) || q->state == THREAD_DONE)
			continue;
		if (q->state != THREAD_WARP || q->wait != mask || op_of(q->pc) != op)
			return 0;
		alive |= 1u << lane;
	}
	return alive;
}

/* Gathers the lanes' operands. Returns false if not all lanes are there yet. */
static bool gather(struct lanes *l, struct thread *t)
{
	struct thread *first = t - (t->index & (LANES - 1));

	l->mask = arrived(t);
	for (uint32_t rest = l->mask; rest; rest &= rest - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(rest);
		struct thread *q = &first[lane];

		l->thread[lane] = q;
		l->insn[lane] = q->pc;
		l->r[lane] = sg_ptx_thread_registers(q);
		l->a[lane] = l->r[lane][q->pc->a];
	}
	return l->mask != 0;
}

/* c has the clamp in bits 0-4 and the segment mask in bits 8-12. */
static uint32_t shuffle_source(enum warp_op op, uint32_t lane, uint32_t b, uint32_t c, bool *ret_ok)
{
	uint32_t segment = c >> 8 & 31, clamp = c & 31;
	uint32_t most = (lane & segment) | (clamp & ~segment), least = lane & segment;
	uint32_t source;

	b &= 31;
	switch (op) {
	case WARP_SHFL_UP:
		source = lane - b;
		*ret_ok = (int32_t)source >= (int32_t)most;
		break;
	case WARP_SHFL_DOWN:
		source = lane + b;
		*ret_ok = source <= most;
		break;
	case WARP_SHFL_BFLY:
		source = lane ^ b;
		*ret_ok = source <= most;
		break;
	default:
		source = least | (b & ~segment);
		*ret_ok = source <= most;
		break;
	}
	return *ret_ok ? source : lane;
}

static uint64_t shuffle(struct lanes *l, uint32_t lane, uint64_t *ret_pred)
{
	const struct insn *i = l->insn[lane];
	uint64_t *r = l->r[lane];
	uint32_t source;
	bool ok;

	source = shuffle_source(op_of(i), lane, (uint32_t)r[i->b], (uint32_t)r[i->c], &ok);
	*ret_pred = ok;
	/*
	 * The value of a lane that takes no part is undefined in PTX. Here the reader gets its own
	 * value.
	 */
	return (uint32_t)l->a[l->mask >> (source & 31) & 1 ? source : lane];
}

static uint32_t ballot(const struct lanes *l)
{
	uint32_t votes = 0;

	for (uint32_t lane = 0; lane < LANES; lane++) {
		if (l->mask >> lane & 1 && l->a[lane])
			votes |= 1u << lane;
	}
	return votes;
}

static uint32_t match(const struct lanes *l, uint32_t of, bool is_wide)
{
	uint32_t same = 0;

	for (uint32_t lane = 0; lane < LANES; lane++) {
		if (l->mask >> lane & 1 && (is_wide ? l->a[lane] == l->a[of]
						    : (uint32_t)l->a[lane] == (uint32_t)l->a[of]))
			same |= 1u << lane;
	}
	return same;
}

static uint32_t fold(enum warp_op op, uint32_t x, uint32_t y)
{
	switch (op) {
	case WARP_REDUX_ADD: return x + y;
	case WARP_REDUX_MIN_U: return x < y ? x : y;
	case WARP_REDUX_MIN_S: return (int32_t)x < (int32_t)y ? x : y;
	case WARP_REDUX_MAX_U: return x > y ? x : y;
	case WARP_REDUX_MAX_S: return (int32_t)x > (int32_t)y ? x : y;
	case WARP_REDUX_AND: return x & y;
	case WARP_REDUX_OR: return x | y;
	default: return x ^ y;
	}
}

static uint32_t reduce(const struct lanes *l, enum warp_op op)
{
	uint32_t v = 0;
	bool is_first = true;

	for (uint32_t lane = 0; lane < LANES; lane++) {
		if (!(l->mask >> lane & 1))
			continue;
		v = is_first ? (uint32_t)l->a[lane] : fold(op, v, (uint32_t)l->a[lane]);
		is_first = false;
	}
	return v;
}

static uint64_t result_of(struct lanes *l, uint32_t lane, uint64_t *ret_pred)
{
	enum warp_op op = op_of(l->insn[lane]);
	uint32_t votes;

	switch (op) {
	case WARP_BAR: return 0;
	case WARP_ELECT:
		*ret_pred = lane == (uint32_t)__builtin_ctz(l->mask);
		return (uint32_t)__builtin_ctz(l->mask);
	case WARP_SHFL_UP:
	case WARP_SHFL_DOWN:
	case WARP_SHFL_BFLY:
	case WARP_SHFL_IDX: return shuffle(l, lane, ret_pred);
	case WARP_VOTE_ALL: return ballot(l) == l->mask;
	case WARP_VOTE_ANY: return ballot(l) != 0;
	case WARP_VOTE_UNI: votes = ballot(l); return votes == 0 || votes == l->mask;
	case WARP_VOTE_BALLOT: return ballot(l);
	case WARP_MATCH_ANY_32: return match(l, lane, false);
	case WARP_MATCH_ANY_64: return match(l, lane, true);
	case WARP_MATCH_ALL_32:
	case WARP_MATCH_ALL_64:
		votes = match(l, lane, op == WARP_MATCH_ALL_64);
		*ret_pred = votes == l->mask;
		return votes == l->mask ? votes : 0;
	default: return reduce(l, op);
	}
}

bool sg_ptx_warp_try(struct thread *t)
{
	uint64_t latest_ps = 0;
	struct lanes l;

	if (!gather(&l, t))
		return false;
	for (uint32_t lane = 0; lane < LANES; lane++) {
		uint64_t pred = 0, value;
		const struct insn *i;

		if (!(l.mask >> lane & 1))
			continue;
		i = l.insn[lane];
		value = result_of(&l, lane, &pred);
		l.r[lane][i->d] = value;
		l.r[lane][i->imm.u >> 8 & SLOT_MASK] = pred;
		if (sg_ptx_thread_ps(l.thread[lane]) > latest_ps)
			latest_ps = sg_ptx_thread_ps(l.thread[lane]);
	}
	for (uint32_t lane = 0; lane < LANES; lane++) {
		struct thread *q = l.thread[lane];

		if (!(l.mask >> lane & 1))
			continue;
		sg_ptx_thread_advance(q, latest_ps);
		/* mark stays, so this instruction is counted with the ones that follow */
		q->pc = l.insn[lane] + 1;
		q->state = THREAD_READY;
	}
	return true;
}
