/*
 * Reads traces; see trace.h. Each reader is a table of columns and a function that takes one row.
 */
#include "sim/data/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/hash.h"
#include "sim/base/csv.h"

#define SECONDS_MAX  1e10 /* 300 years; as nanoseconds it fits in 64 bits */
#define DURATION_MAX 1e9
#define GPUS_MAX     100000

static int no_memory(struct td_err *err)
{
	return td_err_set(err, -ENOMEM, "out of memory");
}

/* Makes room for one more element of an array. */
static int grow(void *array, uint32_t count, uint32_t *room, size_t size)
{
	uint32_t wanted = *room ? 2 * *room : 256;
	void *larger;

	if (count < *room)
		return 0;
	larger = reallocarray(*(void **)array, wanted, size);
	if (!larger)
		return -ENOMEM;
	*(void **)array = larger;
	*room = wanted;
	return 0;
}

/* --- names --- */

static int rehash(struct td_names *names)
{
	uint32_t slots = names->slot_count ? 2 * names->slot_count : 64;
	uint32_t *table = calloc(slots, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; i < names->count; i++) {
		uint32_t at = (uint32_t)td_hash_str(names->text[i]) & (slots - 1);

		while (table[at])
			at = (at + 1) & (slots - 1);
		table[at] = i + 1;
	}
	free(names->slots);
	names->slots = table;
	names->slot_count = slots;
	return 0;
}

uint32_t td_names_add(struct td_names *names, const char *text)
{
	uint32_t at;

	if (!*text)
		return TD_TRACE_NONE;
	if (2 * names->count >= names->slot_count && rehash(names))
		return TD_TRACE_NONE;
	at = (uint32_t)td_hash_str(text) & (names->slot_count - 1);
	for (; names->slots[at]; at = (at + 1) & (names->slot_count - 1))
		if (!strcmp(names->text[names->slots[at] - 1], text))
			return names->slots[at] - 1;
	if (grow(&names->text, names->count, &names->room, sizeof(*names->text)))
		return TD_TRACE_NONE;
	names->text[names->count] = strdup(text);
	if (!names->text[names->count])
		return TD_TRACE_NONE;
	names->slots[at] = ++names->count;
	return names->count - 1;
}

const char *td_names_text(const struct td_names *names, uint32_t name)
{
	return name < names->count ? names->text[name] : "";
}

void td_names_deinit(struct td_names *names)
{
	for (uint32_t i = 0; i < names->count; i++)
		free(names->text[i]);
	free(names->text);
	free(names->slots);
	*names = (struct td_names){0};
}

/* --- columns --- */

/* Returns the first column with one of these names (NULL-terminated), or -1. */
static int column(const struct td_csv *csv, const char *const *names)
{
	int at = -1;

	for (; *names && at < 0; names++)
		at = td_csv_column(csv, *names);
	return at;
}

#define COLUMN(csv, ...) column(csv, (const char *const[]){__VA_ARGS__, NULL})

static int need(const struct td_csv *csv, int column, const char *what, struct td_err *err)
{
	if (column >= 0)
		return 0;
	return td_err_set(err, -EINVAL, "%.100s:1: there is no column %s", csv->name, what);
}

/*
 * Writes the names of columns that nothing reads, see TD_TRACE_UNKNOWN_MAX. `at` has the known
 * ones.
 */
static void name_unknown(const struct td_csv *csv, const int *at, uint32_t known, char *ret)
{
	size_t length = 0;

	ret[0] = 0;
	for (uint32_t c = 0; c < csv->column_count; c++) {
		bool is_known = !*csv->columns[c];

		for (uint32_t k = 0; k < known; k++)
			is_known |= at[k] == (int)c;
		if (is_known || length + strlen(csv->columns[c]) + 3 > TD_TRACE_UNKNOWN_MAX)
			continue;
		length +=
			(size_t)sprintf(ret + length, "%s%s", length ? ", " : "", csv->columns[c]);
	}
}

/* Reads a whole number. Without such a column, or for an empty field, it is `otherwise`. */
static int whole(const struct td_csv *csv, int column, double min, double max, uint32_t otherwise,
	uint32_t *ret, struct td_err *err)
{
	double value;
	int r = td_csv_number_or(csv, column, min, max, otherwise, &value, err);

	if (!r && value != (double)(uint32_t)value)
		r = td_csv_error(csv, err, "%.32s is \"%.32s\": expected a whole number",
			csv->columns[column], td_csv_text(csv, column));
	if (!r)
		*ret = (uint32_t)value;
	return r;
}

/* Calls `take` for each row. A bad row is counted if skip_bad is set, else it ends the reading. */
static int each_row(struct td_csv *csv, bool skip_bad, uint32_t *skipped,
	int (*take)(struct td_csv *csv, const int *at, void *into, struct td_err *err),
	const int *at, void *into, struct td_err *err)
{
	int r;

	while ((r = td_csv_next(csv, err)) != 1) {
		if (!r)
			r = take(csv, at, into, err);
		if (r == -EINVAL && skip_bad)
			(*skipped)++;
		else if (r)
			return r;
	}
	return 0;
}

/* --- jobs --- */

enum {
	SUBMIT,
	DURATION,
	GPUS,
	ID,
	TENANT,
	CLASS,
	MODEL,
	MEMORY,
	MILLI,
	CPU,
	HOST_MEMORY,
	BATCH,
	SET,
	JOB_COLUMNS
};

static int parse_class(struct td_csv *csv, int column, enum td_class *ret, struct td_err *err)
{
	static const struct {
		const char *name;
		enum td_class class;
	} words[] = {{"online", TD_CLASS_ONLINE}, {"guaranteed", TD_CLASS_GUARANTEED},
		{"besteffort", TD_CLASS_BESTEFFORT}, {"LS", TD_CLASS_ONLINE},
		{"Burstable", TD_CLASS_BESTEFFORT}, {"BE", TD_CLASS_BESTEFFORT}};
	const char *text = td_csv_text(csv, column);

	*ret = TD_CLASS_BESTEFFORT;
	if (!*text)
		return 0;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcasecmp(words[i].name, text)) {
			*ret = words[i].class;
			return 0;
		}
	}
	return td_csv_error(csv, err, "%s is \"%.32s\": expected online, guaranteed or besteffort",
		csv->columns[column], text);
}

static int take_job(struct td_csv *csv, const int *at, void *into, struct td_err *err)
{
	struct td_trace *trace = into;
	struct td_trace_job job = {0};
	double gib;
	int r = td_csv_number(csv, at[SUBMIT], 0, SECONDS_MAX, &job.submit_s, err);

	r = r ? r : td_csv_number_or(csv, at[DURATION], 0, DURATION_MAX, -1, &job.duration_s, err);
	r = r ? r : whole(csv, at[GPUS], 0, GPUS_MAX, 1, &job.gpus, err);
	r = r ? r : whole(csv, at[MILLI], 0, 1000, 1000, &job.gpu_milli, err);
	r = r ? r : td_csv_number_or(csv, at[MEMORY], 0, 1e6, 0, &gib, err);
	r = r ? r : whole(csv, at[CPU], 0, 1e9, 0, &job.cpu_milli, err);
	r = r ? r : whole(csv, at[HOST_MEMORY], 0, 4e9, 0, &job.memory_mib, err);
	r = r ? r : whole(csv, at[BATCH], 0, 4e9, 0, &job.batch, err);
	r = r ? r : parse_class(csv, at[CLASS], &job.class, err);
	if (r)
		return r;
	if (!job.gpus || !job.gpu_milli) {
		trace->gpuless++;
		return 0;
	}
	job.memory_bytes = (uint64_t)(gib * 0x1p30);
	job.line = csv->line;
	job.id = td_names_add(&trace->names, td_csv_text(csv, at[ID]));
	job.tenant = td_names_add(&trace->names, td_csv_text(csv, at[TENANT]));
	job.model = td_names_add(&trace->names, td_csv_text(csv, at[MODEL]));
	(void)td_names_add(&trace->sets, td_csv_text(csv, at[SET]));
	trace->undated += job.duration_s < 0;
	if (grow(&trace->jobs, trace->count, &trace->room, sizeof(job)))
		return no_memory(err);
	trace->jobs[trace->count++] = job;
	return 0;
}

/* A job with its row number, because qsort is not stable. */
struct keyed {
	struct td_trace_job job;
	uint32_t row;
};

static int by_time(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->job.submit_s < y->job.submit_s || x->job.submit_s > y->job.submit_s)
		return x->job.submit_s < y->job.submit_s ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static int sort_jobs(struct td_trace *trace)
{
	struct keyed *keyed;
	bool sorted = true;

	for (uint32_t i = 1; i < trace->count; i++)
		sorted &= trace->jobs[i - 1].submit_s <= trace->jobs[i].submit_s;
	if (sorted)
		return 0;
	keyed = calloc(trace->count, sizeof(*keyed));
	if (!keyed)
		return -ENOMEM;
	for (uint32_t i = 0; i < trace->count; i++)
		keyed[i] = (struct keyed){trace->jobs[i], i};
	qsort(keyed, trace->count, sizeof(*keyed), by_time);
	for (uint32_t i = 0; i < trace->count; i++)
		trace->jobs[i] = keyed[i].job;
	free(keyed);
	return 0;
}

int td_trace_take(struct td_csv *csv, bool skip_bad, struct td_trace *ret, struct td_err *err)
{
	const int at[JOB_COLUMNS] = {
		[SUBMIT] = COLUMN(csv, "submit_time_s"),
		[DURATION] = COLUMN(csv, "duration_s"),
		[GPUS] = COLUMN(csv, "num_gpus"),
		[ID] = COLUMN(csv, "job_id"),
		[TENANT] = COLUMN(csv, "tenant", "virtual_cluster"),
		[CLASS] = COLUMN(csv, "class", "qos"),
		[MODEL] = COLUMN(csv, "model", "application"),
		[MEMORY] = COLUMN(csv, "memory_gib"),
		[MILLI] = COLUMN(csv, "gpu_milli"),
		[CPU] = COLUMN(csv, "cpu_milli"),
		[HOST_MEMORY] = COLUMN(csv, "memory_mib"),
		[BATCH] = COLUMN(csv, "batch_size"),
		[SET] = COLUMN(csv, "trace"),
	};
	struct td_trace trace = {.has_durations = at[DURATION] >= 0};
	int r = need(csv, at[SUBMIT], "submit_time_s", err);

	r = r ? r : need(csv, at[GPUS], "num_gpus", err);
	r = r ? r : each_row(csv, skip_bad, &trace.skipped, take_job, at, &trace, err);
	if (!r && sort_jobs(&trace))
		r = no_memory(err);
	name_unknown(csv, at, JOB_COLUMNS, trace.unknown);
	if (r)
		td_trace_deinit(&trace);
	else
		*ret = trace;
	return r;
}

void td_trace_deinit(struct td_trace *trace)
{
	free(trace->jobs);
	td_names_deinit(&trace->names);
	td_names_deinit(&trace->sets);
	*trace = (struct td_trace){0};
}

/* --- requests --- */

enum { ARRIVAL, GAP, SERVICE, INPUT, OUTPUT, REQUEST_COLUMNS };

static int take_request(struct td_csv *csv, const int *at, void *into, struct td_err *err)
{
	struct td_requests *all = into;
	struct td_request request = {0};
	int r = td_csv_number(csv, at[ARRIVAL] >= 0 ? at[ARRIVAL] : at[GAP], 0, SECONDS_MAX,
		&request.arrival_s, err);

	r = r ? r : whole(csv, at[INPUT], 0, 4e9, 0, &request.input_tokens, err);
	r = r ? r : whole(csv, at[OUTPUT], 0, 4e9, 0, &request.output_tokens, err);
	if (r)
		return r;
	if (at[ARRIVAL] < 0 && all->count)
		request.arrival_s += all->requests[all->count - 1].arrival_s;
	request.service = td_names_add(&all->names, td_csv_text(csv, at[SERVICE]));
	if (grow(&all->requests, all->count, &all->room, sizeof(request)))
		return no_memory(err);
	all->requests[all->count++] = request;
	return 0;
}

int td_requests_take(struct td_csv *csv, bool skip_bad, struct td_requests *ret, struct td_err *err)
{
	const int at[REQUEST_COLUMNS] = {
		[ARRIVAL] = COLUMN(csv, "arrival_s"),
		[GAP] = COLUMN(csv, "inter_arrival_s"),
		[SERVICE] = COLUMN(csv, "service", "trace"),
		[INPUT] = COLUMN(csv, "input_tokens", "context_tokens"),
		[OUTPUT] = COLUMN(csv, "output_tokens", "generated_tokens"),
	};
	struct td_requests requests = {0};
	int r = at[ARRIVAL] < 0 ? need(csv, at[GAP], "arrival_s or inter_arrival_s", err) : 0;

	r = r ? r : each_row(csv, skip_bad, &requests.skipped, take_request, at, &requests, err);
	if (r)
		td_requests_deinit(&requests);
	else
		*ret = requests;
	return r;
}

void td_requests_deinit(struct td_requests *requests)
{
	free(requests->requests);
	td_names_deinit(&requests->names);
	*requests = (struct td_requests){0};
}

/* --- nodes --- */

enum { NODE, NODE_GPUS, GPU_MODEL, GPU_MEMORY, NODE_CPU, NODE_MEMORY, NODE_COLUMNS };

static int take_node(struct td_csv *csv, const int *at, void *into, struct td_err *err)
{
	struct td_nodes *all = into;
	struct td_node node = {0};
	double gib;
	int r = whole(csv, at[NODE_GPUS], 0, GPUS_MAX, 0, &node.gpus, err);

	r = r ? r : td_csv_number_or(csv, at[GPU_MEMORY], 0, 1e6, 0, &gib, err);
	r = r ? r : whole(csv, at[NODE_CPU], 0, 4e9, 0, &node.cpu_milli, err);
	r = r ? r : whole(csv, at[NODE_MEMORY], 0, 4e9, 0, &node.memory_mib, err);
	if (r)
		return r;
	node.gpu_memory_bytes = (uint64_t)(gib * 0x1p30);
	node.line = csv->line;
	node.name = td_names_add(&all->names, td_csv_text(csv, at[NODE]));
	node.model = td_names_add(&all->names, td_csv_text(csv, at[GPU_MODEL]));
	if (grow(&all->nodes, all->count, &all->room, sizeof(node)))
		return no_memory(err);
	all->nodes[all->count++] = node;
	all->gpus += node.gpus;
	return 0;
}

int td_nodes_take(struct td_csv *csv, bool skip_bad, struct td_nodes *ret, struct td_err *err)
{
	const int at[NODE_COLUMNS] = {
		[NODE] = COLUMN(csv, "node"),
		[NODE_GPUS] = COLUMN(csv, "num_gpus"),
		[GPU_MODEL] = COLUMN(csv, "gpu_model"),
		[GPU_MEMORY] = COLUMN(csv, "gpu_memory_gib"),
		[NODE_CPU] = COLUMN(csv, "cpu_milli"),
		[NODE_MEMORY] = COLUMN(csv, "memory_mib"),
	};
	struct td_nodes nodes = {0};
	int r = need(csv, at[NODE], "node", err);

	r = r ? r : need(csv, at[NODE_GPUS], "num_gpus", err);
	r = r ? r : each_row(csv, skip_bad, &nodes.skipped, take_node, at, &nodes, err);
	name_unknown(csv, at, NODE_COLUMNS, nodes.unknown);
	if (r)
		td_nodes_deinit(&nodes);
	else
		*ret = nodes;
	return r;
}

void td_nodes_deinit(struct td_nodes *nodes)
{
	free(nodes->nodes);
	td_names_deinit(&nodes->names);
	*nodes = (struct td_nodes){0};
}

/* --- files --- */

#define READER(what)                                                                               \
	int td_##what##_read(                                                                      \
		const char *path, bool skip_bad, struct td_##what *ret, struct td_err *err)        \
	{                                                                                          \
		struct td_csv csv;                                                                 \
		int r = td_csv_open(&csv, path, err);                                              \
                                                                                                   \
		if (r)                                                                             \
			return r;                                                                  \
		r = td_##what##_take(&csv, skip_bad, ret, err);                                    \
		td_csv_close(&csv);                                                                \
		return r;                                                                          \
	}

READER(trace)
READER(requests)
READER(nodes)
