/*
 * Translates statements to instructions: finds the opcode's decoder. Also has the functions that
 * all decoders share.
 */
#include "ptx/parse/parse.h"

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

/* Writes "opcode.modifier.modifier", with at most `most` modifiers. */
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
	return sg_ptx_refuse(p, s->line, "instruction \"%s\" is not supported", name);
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

static const struct opcode *find_opcode(const struct opcode *table, const struct statement *s)
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
			sg_ptx_refuse(p, s->line, "modifier \".%.*s\" of \"%s\" is not supported",
				(int)(m->len < 40 ? m->len : 40), m->at, name);
	}
}

static const struct opcode *find_anywhere(const struct statement *s)
{
	const struct opcode *const tables[] = {sg_ptx_opcodes_arith(), sg_ptx_opcodes_data(),
		sg_ptx_opcodes_control(), sg_ptx_opcodes_async()};
	const struct opcode *found = NULL;

	for (unsigned n = 0; n < sizeof(tables) / sizeof(tables[0]) && !found; n++)
		found = find_opcode(tables[n], s);
	return found;
}

/*
 * cp.async.bulk.tensor needs special treatment, since its operands are like no other instruction's.
 */
static bool is_tensor(const struct statement *s)
{
	for (uint32_t n = 0; n < s->modifier_count; n++) {
		if (sg_ptx_text_is(s->modifiers[n].at, s->modifiers[n].len, "tensor"))
			return true;
	}
	return false;
}

bool sg_ptx_find_opcode(struct parser *p, struct statement *s)
{
	char name[96];

	s->opcode = find_anywhere(s);
	if (s->opcode && !is_tensor(s))
		return true;
	write_name(s, s->opcode ? MAX_MODIFIERS : 1, name, sizeof(name));
	sg_ptx_refuse(p, s->line, "%s \"%s\" is not supported",
		s->opcode ? "instruction" : "opcode", name);
	return false;
}

void sg_ptx_decode(struct parser *p, struct statement *s)
{
	s->opcode->decode(p, s, s->opcode->arg);
	check_modifiers(p, s);
}
