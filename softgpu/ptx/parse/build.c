/*
 * Builds a function: the slots of its frame, its instructions, and jumps to labels that come later.
 * sg_ptx_build_end() resolves those jumps and hands the arrays to the function.
 */
#include <errno.h>
#include <stdlib.h>

#include "ptx/parse/parse.h"

#define RECENT_CONSTANTS 64u

void sg_ptx_build_deinit(struct build *b)
{
	free(b->lives);
	free(b->fixups);
	free(b->constants);
	free(b->tables);
	sg_ptx_names_deinit(&b->labels);
	*b = (struct build){0};
}

void sg_ptx_build_begin(struct parser *p, struct function *f)
{
	p->b = (struct build){.f = f};
	sg_ptx_new_slots(p, SLOT_FIRST, T_NONE);
}

static uint8_t words_of(enum ptx_type type)
{
	if (type == T_NONE || type == T_PRED)
		return 0;
	return sg_ptx_type_bytes(type) == 8 ? 2 : 1;
}

uint32_t sg_ptx_new_slots(struct parser *p, uint32_t count, enum ptx_type type)
{
	struct build *b = &p->b;
	struct function *f = b->f;
	uint32_t first = f->slot_count;

	if (p->failed)
		return SLOT_SCRAP;
	if (count > MAX_FRAME_SLOTS || first + count > MAX_FRAME_SLOTS) {
		sg_ptx_fail(p, p->line, "function \"%s\" has more than %u registers", f->name,
			MAX_FRAME_SLOTS);
		return SLOT_SCRAP;
	}
	if (!sg_ptx_reserve(p, &f->frame, &b->frame_capacity, first + count, sizeof(*f->frame)) ||
		!sg_ptx_reserve(p, &b->lives, &b->live_capacity, first + count, sizeof(*b->lives)))
		return SLOT_SCRAP;
	for (uint32_t n = first; n < first + count; n++) {
		f->frame[n] = 0;
		b->lives[n] = (struct live){.first = UINT32_MAX, .words = words_of(type)};
	}
	f->slot_count = first + count;
	return first;
}

/* The slot is used by the instruction that comes next. */
static void note_use(struct parser *p, uint32_t slot)
{
	struct live *l = &p->b.lives[slot];

	if (p->failed)
		return;
	if (l->first == UINT32_MAX)
		l->first = p->b.f->insn_count;
	l->last = p->b.f->insn_count;
}

uint32_t sg_ptx_constant(struct parser *p, uint64_t value)
{
	struct build *b = &p->b;
	uint32_t oldest =
		b->constant_count > RECENT_CONSTANTS ? b->constant_count - RECENT_CONSTANTS : 0;
	uint32_t slot;

	if (!value)
		return SLOT_ZERO;
	for (uint32_t n = b->constant_count; n-- > oldest;) {
		if (b->f->frame[b->constants[n]] == value)
			return b->constants[n];
	}
	slot = sg_ptx_new_slots(p, 1, T_NONE);
	if (!sg_ptx_reserve(p, &b->constants, &b->constant_capacity, b->constant_count + 1,
		    sizeof(*b->constants)))
		return SLOT_ZERO;
	b->f->frame[slot] = value;
	b->constants[b->constant_count++] = slot;
	return slot;
}

uint32_t sg_ptx_special(struct parser *p, enum special special)
{
	struct build *b = &p->b;
	struct function *f = b->f;

	if (b->special_slots[special])
		return b->special_slots[special];
	if (!sg_ptx_reserve(p, &f->specials, &b->special_capacity, f->special_count + 1,
		    sizeof(*f->specials)))
		return SLOT_ZERO;
	p->m->uses_reserved |= special == SPECIAL_RESERVED_SHARED;
	b->special_slots[special] = sg_ptx_new_slots(p, 1, T_NONE);
	f->specials[f->special_count++] = (struct special_slot){b->special_slots[special], special};
	return b->special_slots[special];
}

static uint32_t relocated(struct parser *p, const struct symbol *s, uint64_t addend)
{
	struct function *f = p->b.f;
	uint32_t slot = sg_ptx_new_slots(p, 1, T_NONE);

	if (!sg_ptx_reserve(
		    p, &f->relocs, &p->b.reloc_capacity, f->reloc_count + 1, sizeof(*f->relocs)))
		return SLOT_ZERO;
	f->relocs[f->reloc_count++] = (struct reloc){.slot = slot,
		.is_shared = s->kind == SYMBOL_SHARED_ENTRY,
		.variable = s->index,
		.addend = (int64_t)addend};
	return slot;
}

uint32_t sg_ptx_new_local(struct parser *p, uint64_t bytes, uint64_t align)
{
	struct function *f = p->b.f;
	uint64_t at = (f->pub.local_bytes + align - 1) & ~(align - 1);

	if (p->failed)
		return 0;
	if (bytes > MAX_LOCAL || at + bytes > MAX_LOCAL) {
		sg_ptx_fail(p, p->line, "function \"%s\" needs more than %u bytes of local memory",
			f->name, MAX_LOCAL);
		return 0;
	}
	f->pub.local_bytes = (uint32_t)(at + bytes);
	return (uint32_t)at;
}

struct insn *sg_ptx_emit(struct parser *p, op_fn fn, uint32_t d, uint32_t a, uint32_t b, uint32_t c)
{
	struct function *f = p->b.f;

	if (p->failed)
		return NULL;
	if (f->insn_count >= MAX_INSTRUCTIONS) {
		sg_ptx_fail(p, p->line, "function \"%s\" is too long", f->name);
		return NULL;
	}
	if (!sg_ptx_reserve(
		    p, &f->insns, &p->b.insn_capacity, f->insn_count + 1, sizeof(*f->insns)) ||
		!sg_ptx_reserve(
			p, &f->lines, &p->b.line_capacity, f->insn_count + 1, sizeof(*f->lines)))
		return NULL;
	f->lines[f->insn_count] = p->line;
	f->insns[f->insn_count] = (struct insn){.fn = fn, .d = d, .a = a, .b = b, .c = c};
	return &f->insns[f->insn_count++];
}

void sg_ptx_fix(struct parser *p, uint32_t insn, const struct operand *label, uint32_t target)
{
	struct build *b = &p->b;

	if (p->failed || !sg_ptx_reserve(p, &b->fixups, &b->fixup_capacity, b->fixup_count + 1,
				 sizeof(*b->fixups)))
		return;
	b->fixups[b->fixup_count++] = (struct fixup){.insn = insn,
		.line = p->line,
		.at = label ? label->at : NULL,
		.len = label ? label->len : 0,
		.target = target};
}

static uint32_t frame_address(struct parser *p, uint32_t offset)
{
	uint32_t slot = sg_ptx_new_slots(p, 1, T_NONE);
	struct insn *i = sg_ptx_emit(p, sg_ptx_move_op(MOVE_FRAME_ADDRESS), slot, 0, 0, 0);

	if (i)
		i->imm.u = offset;
	return slot;
}

static uint32_t symbol_address(struct parser *p, const struct operand *o, uint64_t addend)
{
	const struct symbol *s = &o->symbol;

	switch (s->kind) {
	case SYMBOL_VARIABLE:
	case SYMBOL_SHARED_ENTRY: return relocated(p, s, addend);
	case SYMBOL_SHARED:
	case SYMBOL_PARAM: return sg_ptx_constant(p, s->index + addend);
	case SYMBOL_LOCAL:
	case SYMBOL_FRAME_PARAM: return frame_address(p, s->index + (uint32_t)addend);
	case SYMBOL_FUNCTION:
		if (!s->function->is_entry && !addend)
			return sg_ptx_constant(p, sg_ptx_code_address(s->function));
		break;
	case SYMBOL_SHARED_DYNAMIC:
		if (!addend)
			return sg_ptx_special(p, SPECIAL_DYNAMIC_SHARED);
		break;
	default: break;
	}
	sg_ptx_fail(p, p->line, "\"%.*s\" cannot be used as an address here", (int)o->len, o->at);
	return SLOT_ZERO;
}

static uint32_t read_clock(struct parser *p, const struct operand *o)
{
	uint32_t slot = sg_ptx_new_slots(p, 1, T_NONE);

	sg_ptx_emit(p, sg_ptx_control_op(o->control), slot, 0, 0, 0);
	p->b.clock_end = p->b.f->insn_count;
	return slot;
}

static uint32_t float_constant(struct parser *p, const struct operand *o, enum ptx_type type)
{
	if (type == T_F64 && o->is_single)
		return sg_ptx_constant(p, sg_ptx_from_f64((double)sg_ptx_f32(o->value)));
	if (type == T_F32 && !o->is_single)
		return sg_ptx_constant(p, sg_ptx_from_f32((float)sg_ptx_f64(o->value)));
	return sg_ptx_constant(p, o->value);
}

static uint32_t bad_operand(struct parser *p, const struct operand *o)
{
	sg_ptx_fail(p, p->line, "operand \"%.*s\" does not fit here", (int)o->len, o->at);
	return SLOT_ZERO;
}

static uint32_t negated(struct parser *p, uint32_t slot)
{
	uint32_t result = sg_ptx_new_slots(p, 1, T_NONE);

	sg_ptx_emit(p, sg_ptx_move_op(MOVE_PRED_NOT), result, slot, 0, 0);
	return result;
}

static bool is_float(enum ptx_type type)
{
	return type == T_F32 || type == T_F64;
}

uint32_t sg_ptx_source(struct parser *p, const struct operand *o, enum ptx_type type)
{
	if (p->failed)
		return SLOT_ZERO;
	switch (o->kind) {
	case OPERAND_SLOT:
		if ((o->type == T_PRED) != (type == T_PRED) || (o->is_negated && type != T_PRED))
			return bad_operand(p, o);
		note_use(p, o->slot);
		return o->is_negated ? negated(p, o->slot) : o->slot;
	case OPERAND_INT:
		if (is_float(type))
			return bad_operand(p, o);
		return sg_ptx_constant(p, type == T_PRED ? o->value != 0 : o->value);
	case OPERAND_FLOAT:
		if (!is_float(type) && sg_ptx_type_bytes(type) != (o->is_single ? 4u : 8u))
			return bad_operand(p, o);
		return float_constant(p, o, type);
	case OPERAND_SYMBOL:
		return type == T_PRED ? bad_operand(p, o) : symbol_address(p, o, o->value);
	case OPERAND_CLOCK: return read_clock(p, o);
	default: return bad_operand(p, o);
	}
}

uint32_t sg_ptx_target(struct parser *p, const struct operand *o, enum ptx_type type)
{
	if (p->failed || o->kind == OPERAND_SINK)
		return SLOT_SCRAP;
	if (o->kind != OPERAND_SLOT || o->is_negated || (o->type == T_PRED) != (type == T_PRED) ||
		o->type == T_NONE) {
		bad_operand(p, o);
		return SLOT_SCRAP;
	}
	note_use(p, o->slot);
	return o->slot;
}

/* Returns the base of a symbol's address. */
static enum ptx_space space_of(const struct symbol *s)
{
	switch (s->kind) {
	case SYMBOL_VARIABLE: return SPACE_GLOBAL;
	case SYMBOL_SHARED:
	case SYMBOL_SHARED_ENTRY:
	case SYMBOL_SHARED_DYNAMIC: return SPACE_SHARED;
	case SYMBOL_PARAM: return SPACE_PARAM;
	default: return SPACE_LOCAL;
	}
}

static bool is_within(const struct symbol *s, int64_t offset, uint32_t bytes)
{
	if (s->kind == SYMBOL_SHARED_DYNAMIC || s->kind == SYMBOL_VARIABLE)
		return true;
	return offset >= 0 && (uint64_t)offset + bytes <= s->size;
}

uint32_t sg_ptx_address(struct parser *p, const struct operand *o, enum ptx_space *space,
	uint32_t bytes, int32_t *ret_offset)
{
	struct operand base = *o;

	*ret_offset = 0;
	if (p->failed || o->kind != OPERAND_ADDRESS)
		return p->failed ? SLOT_ZERO : bad_operand(p, o);
	base.kind = o->base;
	if (o->base == OPERAND_SLOT) {
		*ret_offset = (int32_t)o->value;
		if (*space == SPACE_PARAM && !p->b.f->is_entry)
			*space = SPACE_LOCAL;
		return sg_ptx_source(p, &base, T_B64);
	}
	if (o->base == OPERAND_SYMBOL) {
		if (!is_within(&o->symbol, (int64_t)o->value, bytes)) {
			sg_ptx_fail(p, p->line, "access beyond \"%.*s\"", (int)o->len, o->at);
			return SLOT_ZERO;
		}
		*ret_offset = (int32_t)o->value;
		if (o->symbol.kind == SYMBOL_FRAME_PARAM && *space == SPACE_PARAM)
			*space = SPACE_LOCAL;
		if (*space == SPACE_GENERIC)
			*space = space_of(&o->symbol);
		if (*space != space_of(&o->symbol))
			return bad_operand(p, o);
		return symbol_address(p, &base, 0);
	}
	return sg_ptx_constant(p, o->value);
}

/* Registers that are live across a backward jump live from its target on. */
static void stretch_lives(struct build *b)
{
	for (uint32_t n = 0; n < b->fixup_count; n++) {
		const struct fixup *x = &b->fixups[n];

		if (x->target > x->insn)
			continue;
		for (uint32_t s = SLOT_FIRST; s < b->f->slot_count; s++) {
			struct live *l = &b->lives[s];

			if (l->first < x->target && l->last >= x->target && l->last < x->insn)
				l->last = x->insn;
		}
	}
}

/* The most words live at any one instruction, plus what the ABI takes; 16 at least, 255 at most. */
static uint32_t estimate_registers(struct parser *p)
{
	struct build *b = &p->b;
	uint32_t most = 0, count = b->f->insn_count;
	int32_t *change = calloc(count + 2, sizeof(*change)), now = 0;

	if (!change) {
		sg_ptx_fail_memory(p);
		return 0;
	}
	/*
	 * The exact estimate takes time in the product of loops and registers; beyond this size a
	 * cruder one is used.
	 */
	if ((uint64_t)b->fixup_count * b->f->slot_count < 1u << 24)
		stretch_lives(b);
	for (uint32_t s = SLOT_FIRST; s < b->f->slot_count; s++) {
		const struct live *l = &b->lives[s];

		if (l->first > count || l->last > count)
			continue;
		change[l->first] += l->words;
		change[l->last + 1] -= l->words;
	}
	for (uint32_t n = 0; n <= count; n++) {
		now += change[n];
		most = now > (int32_t)most ? (uint32_t)now : most;
	}
	free(change);
	most += 8;
	return most < 16 ? 16 : most > 255 ? 255 : most;
}

static void resolve(struct parser *p, struct fixup *x)
{
	struct function *f = p->b.f;
	const struct symbol *label;

	if (x->at) {
		label = sg_ptx_names_find(&p->b.labels, x->at, x->len);
		if (!label) {
			sg_ptx_fail(
				p, x->line, "label \"%.*s\" is not defined", (int)x->len, x->at);
			return;
		}
		x->target = label->index;
	}
	f->insns[x->insn].imm.target = &f->insns[x->target];
}

void sg_ptx_build_end(struct parser *p)
{
	struct function *f = p->b.f;

	sg_ptx_emit(p, sg_ptx_control_op(CONTROL_RETURN), 0, 0, 0, 0);
	for (uint32_t n = 0; n < p->b.fixup_count && !p->failed; n++)
		resolve(p, &p->b.fixups[n]);
	if (!p->failed) {
		f->pub.registers = estimate_registers(p);
		f->pub.shared_bytes = p->b.entry_shared_bytes;
		f->is_defined = true;
	}
	sg_ptx_build_deinit(&p->b);
}
