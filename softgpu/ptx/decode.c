/* Statements to instructions: finds the opcode's decoder, and what all decoders share. */
#include "ptx/parse.h"

#include <stdio.h>

bool sg_ptx_take(struct statement *s, const char *name)
{
	for (uint32_t n = 0; n < s->modifier_count; n++) {
		struct modifier *m = &s->modifiers[n];

		if (!m->is_taken && sg_ptx_text_is(m->at, m->len, name)) {
			m->is_taken = true;
			return true;
		}
	}
	return false;
}

enum ptx_type sg_ptx_take_type(struct statement *s)
{
	for (uint32_t n = 0; n < s->modifier_count; n++) {
		struct modifier *m = &s->modifiers[n];
		enum ptx_type type = m->is_taken ? T_NONE : sg_ptx_type_of(m->at, m->len);

		if (type != T_NONE) {
			m->is_taken = true;
			return type;
		}
	}
	return T_NONE;
}

/* "opcode.modifier.modifier", with at most `most` of them. */
static void write_name(const struct statement *s, uint32_t most, char *buf, size_t size)
{
	int at = snprintf(buf, size, "%.*s", (int)(s->len < 40 ? s->len : 40), s->at);

	for (uint32_t n = 0; n < s->modifier_count && n < most && at < (int)size; n++)
		at += snprintf(buf + at, size - at, ".%.*s",
			(int)(s->modifiers[n].len < 40 ? s->modifiers[n].len : 40),
			s->modifiers[n].at);
}

int sg_ptx_unsupported(struct parser *p, const struct statement *s)
{
	char name[160];

	write_name(s, MAX_MODIFIERS, name, sizeof(name));
	return sg_ptx_fail(p, s->line, "instruction \"%s\" is not supported", name);
}

bool sg_ptx_operands(struct parser *p, const struct statement *s, uint32_t count)
{
	char name[160];

	if (p->failed || s->operand_count == count)
		return !p->failed;
	write_name(s, MAX_MODIFIERS, name, sizeof(name));
	sg_ptx_fail(p, s->line, "\"%s\" has %u operands where %u are expected", name,
		s->operand_count, count);
	return false;
}

static const struct opcode *find(const struct opcode *table, const struct statement *s)
{
	for (; table->name; table++) {
		if (sg_ptx_text_is(s->at, s->len, table->name))
			return table;
	}
	return NULL;
}

static void check_modifiers(struct parser *p, const struct statement *s)
{
	char name[160];

	write_name(s, MAX_MODIFIERS, name, sizeof(name));
	for (uint32_t n = 0; n < s->modifier_count && !p->failed; n++) {
		const struct modifier *m = &s->modifiers[n];

		if (!m->is_taken)
			sg_ptx_fail(p, s->line, "modifier \".%.*s\" of \"%s\" is not supported",
				(int)(m->len < 40 ? m->len : 40), m->at, name);
	}
}

void sg_ptx_decode(struct parser *p, struct statement *s)
{
	const struct opcode *o = find(sg_ptx_opcodes_arith(), s);
	char name[96];

	if (!o)
		o = find(sg_ptx_opcodes_data(), s);
	if (!o)
		o = find(sg_ptx_opcodes_control(), s);
	if (o) {
		o->decode(p, s, o->arg);
		check_modifiers(p, s);
		return;
	}
	write_name(s, 1, name, sizeof(name));
	sg_ptx_fail(p, s->line, "opcode \"%s\" is not supported", name);
}
