/*
 * Implements cp.async and mbarrier. A copy is made at once, which PTX permits, because no thread
 * may read its target before the wait. So groups never wait, and a copy that reports to an mbarrier
 * reports when it is issued.
 *
 * PTX leaves the layout of an mbarrier's word open. In this implementation it is: pending arrivals
 * (20 bits), expected arrivals of each phase (20), phase (1), outstanding bytes plus TX_ZERO (22).
 * The state that arrive returns is the word from before.
 */
#include "ptx/vm/memory.h"
#include "ptx/vm/ops.h"

#define COUNT_BITS 20u
#define COUNT_MASK ((1ull << COUNT_BITS) - 1)
#define PHASE_BIT  (1ull << 40)
#define TX_SHIFT   41u
#define TX_ZERO    (1ull << 21)

#define ADDRESS (r[i->a] + (uint64_t)(int64_t)(int32_t)i->imm.u)
#define HANDLER(name)                                                                              \
	static const struct insn *name(struct thread *t, uint64_t *r, const struct insn *i)

/* d is the number of bytes written; c is the number of bytes read, and the rest are zeros. */
HANDLER(copy_async)
{
	uint64_t to = ADDRESS, from = r[i->b] + (uint64_t)((int64_t)i->imm.u >> 32);
	uint32_t bytes = i->d, given = (uint32_t)r[i->c] < bytes ? (uint32_t)r[i->c] : bytes;
	uint8_t value[16] = {0}, *p;

	if (given) {
		/* The source is as aligned as the whole copy, also where less of it is read. */
		p = resolve_space(t, i, SPACE_GLOBAL, from, bytes, SG_PTX_LOAD);
		if (!p)
			return NULL;
		memcpy(value, p, given);
	}
	p = resolve_space(t, i, SPACE_SHARED, to, bytes, SG_PTX_STORE);
	if (!p)
		return NULL;
	memcpy(p, value, bytes);
	return i + 1;
}

static const struct insn *copy_bulk(
	struct thread *t, uint64_t *r, const struct insn *i, enum ptx_space to, enum ptx_space from)
{
	uint64_t d = ADDRESS, s = r[i->b] + (uint64_t)((int64_t)i->imm.u >> 32);
	uint32_t size = (uint32_t)r[i->c];

	if (size % 16)
		return sg_ptx_fault_access(t, i, SG_PTX_MISALIGNED_ADDRESS, d, SG_PTX_STORE, size);
	for (uint32_t at = 0; at < size; at += 16) {
		const void *p = resolve_space(t, i, from, s + at, 16, SG_PTX_LOAD);
		void *q = p ? resolve_space(t, i, to, d + at, 16, SG_PTX_STORE) : NULL;

		if (!q)
			return NULL;
		memcpy(q, p, 16);
	}
	return i + 1;
}

HANDLER(copy_bulk_in)
{
	return copy_bulk(t, r, i, SPACE_SHARED, SPACE_GLOBAL);
}

HANDLER(copy_bulk_out)
{
	return copy_bulk(t, r, i, SPACE_GLOBAL, SPACE_SHARED);
}

/* A prefetch has no visible effect. Its bytes count as read from DRAM, as the model has no L2. */
HANDLER(prefetch_bulk)
{
	t->run->result->load_bytes += (uint32_t)r[i->c];
	return i + 1;
}

/*
 * Returns the mbarrier at the address in a; NULL if the run has ended. Generic addresses outside of
 * shared memory are a fault.
 */
static uint64_t *find_word(struct thread *t, uint64_t *r, const struct insn *i)
{
	uint64_t address = ADDRESS;

	if (address >> 56 == SG_PTX_WINDOW_SHARED >> 56)
		address &= (1ull << 56) - 1;
	return resolve_space(t, i, SPACE_SHARED, address, 8, SG_PTX_ATOMIC);
}

static uint64_t fresh(uint64_t expected, uint64_t phase)
{
	return expected | expected << COUNT_BITS | phase | TX_ZERO << TX_SHIFT;
}

/* Returns the word with the phase ended, if no arrival and no byte is outstanding. */
static uint64_t settled(uint64_t word)
{
	if (word & COUNT_MASK || word >> TX_SHIFT != TX_ZERO)
		return word;
	return fresh(word >> COUNT_BITS & COUNT_MASK, (word & PHASE_BIT) ^ PHASE_BIT);
}

HANDLER(barrier_init)
{
	uint64_t *word = find_word(t, r, i);

	if (!word)
		return NULL;
	*word = fresh(r[i->b] & COUNT_MASK, 0);
	return i + 1;
}

HANDLER(barrier_invalidate)
{
	uint64_t *word = find_word(t, r, i);

	if (!word)
		return NULL;
	*word = 0;
	return i + 1;
}

/*
 * d is the new state, b the number of arrivals, c the further bytes to expect. With the flag, later
 * phases expect that many arrivals fewer.
 */
HANDLER(barrier_arrive)
{
	uint64_t *word = find_word(t, r, i), old, count = r[i->b] & COUNT_MASK;
	bool drops = i->imm.u >> 32;

	if (!word)
		return NULL;
	old = *word;
	if ((old & COUNT_MASK) < count)
		return sg_ptx_fault(t, i, SG_PTX_TRAP);
	*word = settled(old - count - (drops ? count << COUNT_BITS : 0) +
			((r[i->c] & COUNT_MASK) << TX_SHIFT));
	r[i->d] = old;
	return i + 1;
}

/* With b bytes: they are expected; with the flag, they have arrived. */
HANDLER(barrier_bytes)
{
	uint64_t *word = find_word(t, r, i), bytes = (r[i->b] & COUNT_MASK) << TX_SHIFT;

	if (!word)
		return NULL;
	*word = settled(i->imm.u >> 32 ? *word - bytes : *word + bytes);
	return i + 1;
}

/*
 * d is whether the phase of state b has ended; with the flag, b is the phase's parity. Other
 * threads run before the instruction is repeated.
 */
HANDLER(barrier_test)
{
	uint64_t *word = find_word(t, r, i), phase;

	if (!word)
		return NULL;
	phase = i->imm.u >> 32 ? (r[i->b] & 1 ? PHASE_BIT : 0) : r[i->b] & PHASE_BIT;
	r[i->d] = (*word & PHASE_BIT) != phase;
	if (r[i->d])
		return i + 1;
	sg_ptx_stop_at(t, i + 1);
	t->did_yield = true;
	return NULL;
}

HANDLER(barrier_pending)
{
	(void)t;
	r[i->d] = r[i->a] & COUNT_MASK;
	return i + 1;
}

op_fn sg_ptx_async_op(enum async_op op)
{
	static const op_fn table[ASYNC_N] = {
		[ASYNC_COPY] = copy_async,
		[ASYNC_BULK_IN] = copy_bulk_in,
		[ASYNC_BULK_OUT] = copy_bulk_out,
		[ASYNC_BULK_PREFETCH] = prefetch_bulk,
		[ASYNC_INIT] = barrier_init,
		[ASYNC_INVALIDATE] = barrier_invalidate,
		[ASYNC_ARRIVE] = barrier_arrive,
		[ASYNC_BYTES] = barrier_bytes,
		[ASYNC_TEST] = barrier_test,
		[ASYNC_PENDING] = barrier_pending,
	};

	return table[op];
}
