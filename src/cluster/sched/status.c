/* This file implements status.h. */
#include "cluster/sched/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define JOBS_MAX   2000u
#define FIELDS_MAX 8u

static const char *const phases[TD_BRAIN_PHASE_N] = {"waits", "placed", "runs"};

/* -- writing -- */

/* Adds a word. Marks that would end it become "?". */
static void add(struct td_text *text, const char *word, char end)
{
	for (const char *c = word; *c; c++) {
		char mark = *c < ' ' && *c >= 0 ? '?' : *c;

		td_text_put(text, &mark, 1);
	}
	td_text_put(text, &end, 1);
}

static void write_places(const struct td_brain *brain, uint32_t at, struct td_text *text)
{
	struct td_brain_place places[TD_GANG_MAX];
	uint32_t count = td_brain_places(brain, at, places);

	for (uint32_t k = 0; k < count; k++)
		td_text_add(text, "%s%s:%u", k ? "," : "", places[k].node, places[k].gpu);
	td_text_add(text, "\t");
}

static void write_job(const struct td_brain *brain, uint32_t at, struct td_text *text)
{
	const struct td_brain_job *job = td_brain_job(brain, at);
	char why[256];

	td_text_add(text, "job\t");
	add(text, job->request.id, '\t');
	add(text, job->request.tenant, '\t');
	td_text_add(text, "%s\t%u\t%s\t", phases[job->phase], job->request.gpus,
		job->phase == TD_BRAIN_WAITING ? ""
		: job->guest                   ? "guest"
					       : "held");
	write_places(brain, at, text);
	add(text, td_brain_explain(brain, at, why, sizeof(why)), '\n');
}

void td_status_write(
	const struct td_brain *brain, const char *leader, uint64_t revision, struct td_text *text)
{
	static const char *const words[] = {"up", "closed", "full", "shut"};
	const struct td_brain_params *params = td_brain_params_of(brain);
	uint32_t jobs = 0, max = td_brain_jobs_max(brain);
	struct td_brain_node_state node;

	td_text_add(text, "leader\t");
	add(text, leader, '\t');
	td_text_add(text, "%llu\n", (unsigned long long)revision);
	for (uint32_t n = 0; n < params->shape.nodes_max; n++) {
		if (!td_brain_node_at(brain, n, &node))
			continue;
		td_text_add(text, "node\t");
		add(text, node.name, '\t');
		td_text_add(text, "%u\t%s\n", node.gpus,
			words[node.closed   ? 1
				: node.shut ? 3
				: node.full ? 2
					    : 0]);
	}
	for (uint32_t t = 0; t < params->tenant_count; t++) {
		td_text_add(text, "tenant\t");
		add(text, params->tenants[t].name, '\t');
		td_text_add(text, "%u\t", td_brain_quota_used(brain, t));
		if (params->tenants[t].quota >= UINT32_MAX / 2)
			td_text_add(text, "\n");
		else
			td_text_add(text, "%u\n", params->tenants[t].quota);
	}
	for (uint32_t at = 0; at < max; at++)
		if (td_brain_job(brain, at) && ++jobs <= JOBS_MAX)
			write_job(brain, at, text);
	if (jobs > JOBS_MAX)
		td_text_add(text, "more\t%u\n", jobs - JOBS_MAX);
}

int td_status_save(const char *path, const struct td_text *text)
{
	char next[1024];
	int fd, r = 0;

	if (text->failed ||
		snprintf(next, sizeof(next), "%s.%d", path, (int)getpid()) >= (int)sizeof(next))
		return -EINVAL;
	fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	if (write(fd, text->text, text->length) != (ssize_t)text->length)
		r = -EIO;
	if (close(fd) && !r)
		r = -errno;
	if (!r && rename(next, path))
		r = -errno;
	if (r)
		(void)unlink(next);
	return r;
}

/* -- showing -- */

static const struct kind {
	const char *name, *title, *list; /* list: of these rows in JSON */
	uint32_t fields;
	const char *field[FIELDS_MAX];
	bool is_number[FIELDS_MAX];
	int width[FIELDS_MAX];
} kinds[] = {
	{"leader", "LEADER", "leaders", 2, {"name", "revision"}, {false, true}, {24, 8}},
	{"node", "NODE", "nodes", 3, {"name", "gpus", "state"}, {false, true, false}, {24, 5, 6}},
	{"tenant", "TENANT", "tenants", 3, {"name", "used", "quota"}, {false, true, true},
		{24, 5, 6}},
	{"job", "JOB", "jobs", 7, {"id", "tenant", "phase", "gpus", "kind", "places", "why"},
		{false, false, false, true, false, false, false}, {10, 12, 7, 5, 6, 18, 0}},
	{"more", "MORE", "more_jobs", 1, {"jobs"}, {true}, {8}},
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

/* Copies the field with this number of a row. Returns ret. */
static const char *field_of(const char *row, uint32_t number, char *ret, size_t len)
{
	size_t n;

	for (; number; number--) {
		row += strcspn(row, "\t\n");
		row += *row == '\t';
	}
	n = strcspn(row, "\t\n");
	snprintf(ret, len, "%.*s", (int)n, row);
	return ret;
}

static void show_json(const struct kind *kind, const char *row, bool is_first, struct td_text *text)
{
	char word[4096];

	td_text_add(text, "%s\n  {", is_first ? "" : ",");
	for (uint32_t f = 0; f < kind->fields; f++) {
		td_text_add(text, "%s\"%s\": ", f ? ", " : "", kind->field[f]);
		(void)field_of(row, f + 1, word, sizeof(word));
		if (!kind->is_number[f])
			td_text_add_json(text, word);
		else if (*word && strspn(word, "0123456789") == strlen(word))
			td_text_add(text, "%s", word);
		else
			td_text_add(text, "null");
	}
	td_text_add(text, "}");
}

static void show_row(const struct kind *kind, const char *row, struct td_text *text)
{
	char word[4096];

	for (uint32_t f = 0; f < kind->fields; f++) {
		const char *shown = field_of(row, f + 1, word, sizeof(word));

		if (!*shown && !strcmp(kind->name, "tenant"))
			shown = f ? "-" : "(others)";
		td_text_add(text, kind->is_number[f] ? "%s%*s" : "%s%-*s", f ? "  " : "",
			kind->width[f], shown);
	}
	while (text->length && text->text[text->length - 1] == ' ')
		text->text[--text->length] = 0;
	td_text_add(text, "\n");
}

static void show_title(const struct kind *kind, struct td_text *text)
{
	td_text_add(text, "%s%-*s", text->length ? "\n" : "", kind->width[0], kind->title);
	for (uint32_t f = 1; f < kind->fields; f++)
		td_text_add(text, kind->is_number[f] ? "  %*s" : "  %-*s", kind->width[f],
			kind->field[f]);
	td_text_add(text, "\n");
}

void td_status_show(const char *rows, bool json, struct td_text *text)
{
	for (uint32_t k = 0; k < KINDS; k++) {
		const struct kind *kind = &kinds[k];
		size_t len = strlen(kind->name);
		bool is_first = true;

		if (json)
			td_text_add(text, "%s\"%s\": [", k ? ",\n" : "{", kind->list);
		for (const char *row = rows; *row; row += strcspn(row, "\n"), row += *row == '\n') {
			if (strncmp(row, kind->name, len) != 0 || row[len] != '\t')
				continue;
			if (!json && is_first)
				show_title(kind, text);
			if (json)
				show_json(kind, row, is_first, text);
			else
				show_row(kind, row, text);
			is_first = false;
		}
		if (json)
			td_text_add(text, "]");
	}
	if (json)
		td_text_add(text, "}\n");
}
