/*
 * Finds loops that only wait for a clock, for spin.c: a short body of plain arithmetic with a read
 * of a clock, in which nothing that an iteration reads was left by the one before.
 */
#include <string.h>

#include "ptx/parse/parse.h"

#define MAX_BODY 32u

/* Returns whether the instruction has the form d = f(a, b, c), or is nanosleep. */
static bool is_plain(const struct statement *s)
{
	static const char *const names[] = {"add", "sub", "mul", "mov", "setp", "selp", "cvt",
		"and", "or", "xor", "not", "shl", "shr", "min", "max", "neg", "nanosleep"};
	bool known = false;

	for (unsigned n = 0; n < sizeof(names) / sizeof(names[0]); n++)
		known |= sg_ptx_text_is(s->at, s->len, names[n]);
	for (uint32_t n = 0; n < s->modifier_count; n++)
		known &= !sg_ptx_text_is(s->modifiers[n].at, s->modifiers[n].len, "cc");
	for (uint32_t n = 0; n < s->operand_count; n++)
		known &= s->operands[n].kind != OPERAND_VECTOR &&
			 s->operands[n].kind != OPERAND_ADDRESS && !s->operands[n].second;
	return known;
}

void sg_ptx_note_plainness(struct parser *p, const struct statement *s)
{
	if (!is_plain(s))
		p->b.plain_from = p->b.f->insn_count;
}

static bool is_in(const uint32_t *slots, uint32_t count, uint32_t slot)
{
	for (uint32_t n = 0; n < count; n++) {
		if (slots[n] == slot)
			return true;
	}
	return false;
}

/* Tells whether an instruction reads a slot that it or a later one writes. */
static bool carries(const struct insn *body, uint32_t count)
{
	uint32_t written[MAX_BODY], writes = 0, all[MAX_BODY];

	for (uint32_t n = 0; n < count; n++)
		all[n] = body[n].d;
	for (uint32_t n = 0; n < count; n++) {
		const uint32_t reads[] = {body[n].a, body[n].b, body[n].c};

		for (unsigned k = 0; k < 3; k++) {
			if (reads[k] >= SLOT_FIRST && is_in(all, count, reads[k]) &&
				!is_in(written, writes, reads[k]))
				return true;
		}
		written[writes++] = body[n].d;
	}
	return false;
}

bool sg_ptx_is_spin(const struct parser *p, uint32_t branch, uint32_t plain_from, const char *label,
	uint32_t len)
{
	const struct build *b = &p->b;
	const struct symbol *s = sg_ptx_names_find(&b->labels, label, len);

	return s && s->index < branch && branch - s->index <= MAX_BODY && plain_from <= s->index &&
	       b->clock_end > s->index && !carries(b->f->insns + s->index, branch - s->index);
}
