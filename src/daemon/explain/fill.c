/* Fills the templates of causes.def: figures as text for people, and as numbers for programs. */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "daemon/explain/facts.h"

static const struct fact {
	const char *name;
	enum td_fact_kind kind;
	size_t offset;
} table[] = {
#define FACT(kind, name) {#name, TD_FACT_##kind, offsetof(struct td_facts, name)},
#include "daemon/explain/facts.def"
#undef FACT
};

/*
 * Returns the fact that the template names between braces, or NULL. *at points behind the opening
 * brace and is moved behind the closing one.
 */
static const struct fact *next_fact(const char **at)
{
	size_t len = strcspn(*at, "}");
	const char *name = *at;

	*at += len + (name[len] == '}');
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (strlen(table[i].name) == len && !memcmp(table[i].name, name, len))
			return &table[i];
	return NULL;
}

static uint64_t number_of(const struct td_facts *facts, const struct fact *fact)
{
	uint64_t value;

	memcpy(&value, (const char *)facts + fact->offset, sizeof(value));
	return value;
}

static void format(const struct td_facts *facts, const struct fact *fact, char *buf, size_t len)
{
	const char *text;

	switch (fact->kind) {
	case TD_FACT_BYTES: td_format_size(buf, len, number_of(facts, fact)); break;
	case TD_FACT_NS: td_format_duration(buf, len, number_of(facts, fact)); break;
	case TD_FACT_PPM: snprintf(buf, len, "%g%%", (double)number_of(facts, fact) / 1e4); break;
	case TD_FACT_COUNT:
		snprintf(buf, len, "%llu", (unsigned long long)number_of(facts, fact));
		break;
	case TD_FACT_TEXT:
		memcpy(&text, (const char *)facts + fact->offset, sizeof(text));
		snprintf(buf, len, "%s", text);
		break;
	}
}

char *td_facts_fill(const struct td_facts *facts, const char *template, char *buf, size_t len)
{
	const struct fact *fact;
	char value[256];
	size_t n = 0;

	*buf = 0;
	while (*template && n + 1 < len) {
		if (*template != '{') {
			buf[n++] = *template ++;
			buf[n] = 0;
			continue;
		}
		template ++;
		fact = next_fact(&template);
		if (!fact)
			continue;
		format(facts, fact, value, sizeof(value));
		snprintf(buf + n, len - n, "%s", value);
		n += strlen(buf + n);
	}
	return buf;
}

char *td_facts_list(const struct td_facts *facts, const char *template, char *buf, size_t len)
{
	const struct fact *fact;
	size_t n = 0;

	*buf = 0;
	while ((template = strchr(template, '{'))) {
		template ++;
		fact = next_fact(&template);
		if (!fact || fact->kind == TD_FACT_TEXT || n >= len)
			continue;
		n += (size_t)snprintf(buf + n, len - n, "%s%s=%llu", n ? " " : "", fact->name,
			(unsigned long long)number_of(facts, fact));
	}
	return buf;
}
