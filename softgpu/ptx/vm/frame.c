/*
 * A thread's frames: the entry's and those of the device functions it calls, in one growing array
 * of slots and one of local memory. Addresses of local memory are offsets, so both may move.
 */
#include "ptx/vm/sched.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRAMES      256u
#define MAX_SLOTS       (1u << 20)
#define MAX_LOCAL_BYTES (1u << 20)

static uint32_t align_up(uint32_t v, uint32_t align)
{
	return (v + align - 1) & ~(align - 1);
}

static bool grow(void *array, uint32_t *capacity, uint32_t need, size_t size)
{
	uint32_t wanted = need > 2 * *capacity ? need : 2 * *capacity;
	void *grown;

	if (need <= *capacity)
		return true;
	grown = realloc(*(void **)array, wanted * size);
	if (!grown)
		return false;
	*(void **)array = grown;
	*capacity = wanted;
	return true;
}

static uint64_t special_value(const struct thread *t, enum special special)
{
	const struct run *run = t->run;
	const struct sg_ptx_launch *launch = run->launch;
	const uint32_t *dim = launch->block;
	uint32_t lane = t->index & 31, sms = launch->time.sm_count;

	if (!sms)
		sms = launch->time.slots;
	switch (special) {
	case SPECIAL_TID_X: return t->index % dim[0];
	case SPECIAL_TID_Y: return t->index / dim[0] % dim[1];
	case SPECIAL_TID_Z: return t->index / dim[0] / dim[1];
	case SPECIAL_NTID_X:
	case SPECIAL_NTID_Y:
	case SPECIAL_NTID_Z: return dim[special - SPECIAL_NTID_X];
	case SPECIAL_CTAID_X:
	case SPECIAL_CTAID_Y:
	case SPECIAL_CTAID_Z: return t->block->id[special - SPECIAL_CTAID_X];
	case SPECIAL_NCTAID_X:
	case SPECIAL_NCTAID_Y:
	case SPECIAL_NCTAID_Z: return launch->grid[special - SPECIAL_NCTAID_X];
	case SPECIAL_LANEID: return lane;
	case SPECIAL_WARPID: return t->index / 32;
	case SPECIAL_NWARPID: return (run->thread_count + 31) / 32;
	case SPECIAL_SMID: return t->block->slot % sms;
	case SPECIAL_NSMID: return sms;
	case SPECIAL_GRIDID: return 0;
	case SPECIAL_LANEMASK_EQ: return 1u << lane;
	case SPECIAL_LANEMASK_LT: return (1u << lane) - 1;
	case SPECIAL_LANEMASK_LE: return (2ull << lane) - 1;
	case SPECIAL_LANEMASK_GT: return (uint32_t) ~((2ull << lane) - 1);
	case SPECIAL_LANEMASK_GE: return (uint32_t) ~((1ull << lane) - 1);
	case SPECIAL_TOTAL_SHARED: return run->dynamic_shared_at + launch->dynamic_shared_bytes;
	case SPECIAL_DYNAMIC_SHARED_BYTES: return launch->dynamic_shared_bytes;
	case SPECIAL_GRID_LOW: return launch->cooperative ? (uint32_t)WINDOW_GRID : 0;
	case SPECIAL_GRID_HIGH: return launch->cooperative ? WINDOW_GRID >> 32 : 0;
	case SPECIAL_RESERVED_SHARED: return run->reserved_shared_at;
	case SPECIAL_ZERO: return 0;
	case SPECIAL_ONE: return 1;
	case SPECIAL_DYNAMIC_SHARED: return run->dynamic_shared_at;
	case SPECIAL_N: break;
	}
	return 0;
}

/* Returns 0, SG_PTX_STACK_OVERFLOW or -ENOMEM. */
static int push(struct thread *t, const struct function *f, const struct call *call,
	const struct insn *back)
{
	struct context *c = t->context;
	struct frame_record *last = c->frame_count ? &c->frames[c->frame_count - 1] : NULL;
	uint32_t slots_at = last ? last->slots_at + last->function->slot_count : 0;
	uint32_t local_at = align_up(c->local_bytes, 16);
	uint64_t *r;

	if (c->frame_count >= MAX_FRAMES || slots_at + f->slot_count > MAX_SLOTS ||
		local_at + (uint64_t)f->pub.local_bytes > MAX_LOCAL_BYTES)
		return SG_PTX_STACK_OVERFLOW;
	if (!grow(&c->frames, &c->frame_capacity, c->frame_count + 1, sizeof(*c->frames)) ||
		!grow(&c->slots, &c->slot_capacity, slots_at + f->slot_count, sizeof(*c->slots)) ||
		!grow(&c->local, &c->local_capacity, local_at + f->pub.local_bytes + 1, 1))
		return -ENOMEM;
	c->frames[c->frame_count++] = (struct frame_record){.function = f,
		.call = call,
		.back = back,
		.slots_at = slots_at,
		.local_at = local_at};
	c->local_bytes = local_at + f->pub.local_bytes;
	if (f->pub.local_bytes)
		memset(c->local + local_at, 0, f->pub.local_bytes);
	t->local_at = local_at;
	r = c->slots + slots_at;
	if (f->slot_count)
		memcpy(r, f->frame, f->slot_count * sizeof(*r));
	for (uint32_t n = 0; n < f->special_count; n++)
		r[f->specials[n].slot] = special_value(t, f->specials[n].special);
	t->mark = t->pc = f->insns;
	return 0;
}

uint64_t *sg_ptx_thread_registers(const struct thread *t)
{
	const struct context *c = t->context;

	return c->slots + c->frames[c->frame_count - 1].slots_at;
}

bool sg_ptx_thread_start(struct thread *t)
{
	struct context *c = t->run->contexts;

	if (c) {
		t->run->contexts = c->next;
	} else {
		c = calloc(1, sizeof(*c));
		if (!c)
			return false;
	}
	c->frame_count = 0;
	c->local_bytes = 0;
	t->context = c;
	t->state = THREAD_READY;
	return !push(t, t->run->function, NULL, NULL);
}

void sg_ptx_thread_release(struct thread *t)
{
	if (!t->context)
		return;
	t->context->next = t->run->contexts;
	t->run->contexts = t->context;
	t->context = NULL;
}

void sg_ptx_contexts_free(struct run *run)
{
	while (run->contexts) {
		struct context *c = run->contexts;

		run->contexts = c->next;
		free(c->slots);
		free(c->local);
		free(c->frames);
		free(c);
	}
}

static const struct insn *enter(
	struct thread *t, const struct insn *i, const struct call *call, const struct function *f)
{
	uint32_t from = t->local_at;
	int r;

	r = push(t, f, call, i + 1);
	if (r)
		return sg_ptx_fault(t, i, r);
	t->count++;
	for (uint32_t n = call->result_count; n < call->copy_count; n++)
		memcpy(t->context->local + t->local_at + f->formals[n].offset,
			t->context->local + from + call->copies[n].at, call->copies[n].size);
	t->state = THREAD_FRAME;
	t->did_yield = t->count >= t->slice_end;
	return NULL;
}

const struct insn *sg_ptx_call(struct thread *t, const struct insn *i)
{
	return enter(t, i, i->imm.call, i->imm.call->callee);
}

/* Checks the requirements of link.c on calls whose callee is known. */
static bool fits(const struct call *call, const struct function *f)
{
	if (f->is_entry || !f->is_defined || call->copy_count != f->formal_count ||
		call->result_count != f->result_count)
		return false;
	for (uint32_t n = 0; n < call->copy_count; n++) {
		if (call->copies[n].size != f->formals[n].size)
			return false;
	}
	return true;
}

const struct insn *sg_ptx_call_at(struct thread *t, const uint64_t *r, const struct insn *i)
{
	const struct sg_ptx_module *m = t->run->launch->module;
	uint64_t number = (r[i->a] - WINDOW_CODE) >> CODE_SHIFT;

	if (!number || number > m->function_count || !fits(i->imm.call, m->functions[number - 1]))
		return sg_ptx_fault(t, i, SG_PTX_INVALID_PC);
	return enter(t, i, i->imm.call, m->functions[number - 1]);
}

const struct insn *sg_ptx_return(struct thread *t)
{
	struct context *c = t->context;
	struct frame_record *top = &c->frames[c->frame_count - 1], *below;

	if (c->frame_count == 1) {
		t->state = THREAD_DONE;
		return NULL;
	}
	below = top - 1;
	for (uint32_t n = 0; n < top->call->result_count; n++)
		memcpy(c->local + below->local_at + top->call->copies[n].at,
			c->local + top->local_at + top->function->formals[n].offset,
			top->call->copies[n].size);
	c->frame_count--;
	c->local_bytes = below->local_at + below->function->pub.local_bytes;
	t->local_at = below->local_at;
	t->mark = t->pc = top->back;
	t->state = THREAD_FRAME;
	return NULL;
}
