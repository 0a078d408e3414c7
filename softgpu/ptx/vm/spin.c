/*
 * Loops that only wait for a clock to pass a value: what decode_spin.c found to read nothing but
 * the clock and registers that the loop leaves alone. So what the next iteration decides depends on
 * the time alone, and the time at which it ends the loop can be searched for: the body is tried at
 * times twice as far until it leaves, and then in halves. The thread goes on shortly after that
 * time, as if it had gone round until then. A loop that no time ends goes round.
 */
#include "ptx/vm/ops.h"

#define FIRST_PS      8000ull
#define RESOLUTION_PS 500000ull
#define HORIZON_PS    (1ull << 55) /* ten hours */

struct spin {
	struct thread *t;
	uint64_t *r;
	const struct insn *branch;
	bool stays_if; /* the value of the predicate with which the loop repeats */
	struct thread saved;
};

/*
 * Tests one iteration at `ahead` after now: returns whether it leaves the loop. The real iteration
 * writes its registers again.
 */
static bool leaves(struct spin *s, uint64_t ahead)
{
	op_fn nanosleep = sg_ptx_control_op(CONTROL_NANOSLEEP);
	const struct insn *i = s->branch->imm.target;

	s->t->extra_ps = s->saved.extra_ps + ahead;
	s->t->spin_ps = 0;
	while (i != s->branch) {
		if (i->fn == nanosleep) {
			s->t->extra_ps += (uint64_t)(uint32_t)s->r[i->a] * 1000;
			i++;
		} else {
			i = i->fn(s->t, s->r, i);
		}
	}
	s->t->count = s->saved.count;
	return (s->r[s->branch->a] != 0) != s->stays_if;
}

/* Threads of a grid mostly wait for the same time. */
static bool is_hint_right(struct spin *s)
{
	const struct run *run = s->t->run;

	return run->spin_ps && leaves(s, run->spin_ps) && !leaves(s, run->spin_ps - RESOLUTION_PS);
}

/* Returns how far ahead the loop ends; 0: it does not. */
static uint64_t search(struct spin *s)
{
	uint64_t stays = 0, ends = FIRST_PS;

	if (is_hint_right(s))
		return s->t->run->spin_ps;
	while (!leaves(s, ends)) {
		stays = ends;
		ends *= 2;
		if (ends > HORIZON_PS)
			return 0;
	}
	while (ends - stays > RESOLUTION_PS) {
		uint64_t middle = stays + (ends - stays) / 2;

		if (leaves(s, middle))
			ends = middle;
		else
			stays = middle;
	}
	if (ends > RESOLUTION_PS)
		s->t->run->spin_ps = ends;
	return ends;
}

static const struct insn *go_round(
	struct thread *t, uint64_t *r, const struct insn *i, bool stays_if)
{
	struct spin s = {.t = t, .r = r, .branch = i, .stays_if = stays_if, .saved = *t};
	uint64_t ahead;

	if ((r[i->a] != 0) != stays_if)
		return i + 1;
	ahead = search(&s);
	*t = s.saved;
	t->extra_ps += ahead;
	return sg_ptx_jump(t, i, i->imm.target);
}

static const struct insn *spin_if(struct thread *t, uint64_t *r, const struct insn *i)
{
	return go_round(t, r, i, true);
}

static const struct insn *spin_if_not(struct thread *t, uint64_t *r, const struct insn *i)
{
	return go_round(t, r, i, false);
}

op_fn sg_ptx_spin_op(bool negated)
{
	return negated ? spin_if_not : spin_if;
}
