/* The verbs gpu and events: print rows for people, or JSON. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/program.h"
#include "base/uuid.h"
#include "cli/cli.h"
#include "cli/columns.h"
#include "gpu/nvml.h"
#include "proto/socket.h"
#include "view/metrics.h"

#define SIZE(cells, column, bytes)                                                                 \
	td_format_size(td_cell(cells, TD_COLUMN_##column), TD_CELL_BYTES, bytes)
#define TIME(cells, column, ns)                                                                    \
	td_format_duration(td_cell(cells, TD_COLUMN_##column), TD_CELL_BYTES, ns)
#define TEXT(cells, column, ...) td_cell_set(cells, TD_COLUMN_##column, __VA_ARGS__)

struct sink {
	bool json;
	struct td_json out;
	unsigned rows;
};

/* Prints a row. The titles are printed before the first row, so without rows nothing is printed. */
static void print_row(struct sink *sink, const char *list, const struct td_cells *cells)
{
	if (!sink->rows++)
		td_columns_print_titles(list);
	td_columns_print(list, cells);
}

static void gpu_row(const struct td_msg *msg, void *arg)
{
	const struct td_msg_gpu *gpu = &msg->gpu;
	struct sink *sink = arg;
	struct td_cells cells = {0};

	if (msg->type != TD_MSG_TYPE_gpu)
		return;
	if (sink->json) {
		td_rows_gpu(&sink->out, gpu);
		return;
	}
	if (gpu->index != UINT32_MAX)
		TEXT(&cells, gpu_number, "%u", gpu->index);
	TEXT(&cells, gpu_name, "%s", gpu->name);
	td_gpu_uuid(td_cell(&cells, TD_COLUMN_gpu_uuid), gpu);
	if (gpu->known & TD_GPU_KNOWS_UTILISATION)
		TEXT(&cells, gpu_busy, "%u%%", gpu->util_ppm / 10000 % 1000);
	if (gpu->known & TD_GPU_KNOWS_SM_ACTIVITY)
		TEXT(&cells, gpu_sms, "%u%%", gpu->sm_activity_ppm / 10000 % 1000);
	if (gpu->known & TD_GPU_KNOWS_CLOCK)
		TEXT(&cells, gpu_clock, "%u MHz", gpu->sm_mhz % 100000);
	if (gpu->known & TD_GPU_IS_DIVIDED)
		TEXT(&cells, gpu_busy, "MIG");
	if (gpu->known & TD_GPU_IS_LOST)
		TEXT(&cells, gpu_busy, "lost");
	if (gpu->known & TD_GPU_KNOWS_MEMORY) {
		SIZE(&cells, gpu_used, gpu->used_bytes);
		SIZE(&cells, gpu_memory, gpu->memory_bytes);
	}
	SIZE(&cells, gpu_capacity, gpu->capacity_bytes);
	SIZE(&cells, gpu_device, gpu->resident_bytes);
	SIZE(&cells, gpu_demanded, gpu->demanded_bytes);
	TEXT(&cells, gpu_processes, "%u", gpu->clients);
	TEXT(&cells, gpu_holder, "%s", gpu->holder);
	TEXT(&cells, gpu_handovers, "%llu", (unsigned long long)gpu->handovers);
	TEXT(&cells, gpu_mps, "%s", gpu->mps);
	TEXT(&cells, gpu_monitor, "%s", gpu->monitor);
	TEXT(&cells, gpu_health, "%s", gpu->health);
	if (gpu->handover_ns)
		TIME(&cells, gpu_each, gpu->handover_ns);
	print_row(sink, "gpu", &cells);
}

int td_verb_gpu(int argc, char **argv)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_list_gpus};
	struct sink sink = {0};
	int status = td_cli_list_options(argc, argv, &sink.json);

	if (status)
		return status;
	if (sink.json)
		td_json_begin(&sink.out, stdout);
	status = td_cli_ask(&msg, gpu_row, &sink);
	if (sink.json)
		td_json_end(&sink.out);
	else if (!status && !sink.rows)
		puts("no GPU is known here: no NVML, and none was used through tandem yet");
	return status;
}

static void event_json(struct td_json *j, const struct td_msg_event *event)
{
	td_json_row(j);
	td_json_u64(j, "number", event->number);
	td_json_u64(j, "time_ns", event->time_ns);
	td_json_u64(j, "wall_ns", event->wall_ns);
	td_json_str(j, "kind", event->kind);
	td_rows_who(j, event->job, event->name, event->pid);
	td_rows_number(j, "gpu", event->gpu);
	td_json_u64(j, "value_ns", event->value_ns);
	td_json_u64(j, "value_bytes", event->value_bytes);
	td_json_str(j, "detail", event->detail);
	td_json_end_row(j);
}

static void event_row(const struct td_msg *msg, void *arg)
{
	const struct td_msg_event *event = &msg->event;
	time_t seconds = (time_t)(event->wall_ns / 1000000000);
	struct sink *sink = arg;
	struct td_cells cells = {0};
	char clock[16];
	struct tm tm;

	if (msg->type != TD_MSG_TYPE_event)
		return;
	if (sink->json) {
		event_json(&sink->out, event);
		return;
	}
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&seconds, &tm));
	TEXT(&cells, events_time, "%s.%03u", clock, (unsigned)(event->wall_ns / 1000000 % 1000));
	TEXT(&cells, events_event, "%s", event->kind);
	TEXT(&cells, events_name, "%s", event->name);
	if (event->pid)
		TEXT(&cells, events_pid, "%u", event->pid);
	if (event->gpu != UINT32_MAX)
		TEXT(&cells, events_gpu, "%u", event->gpu);
	if (event->value_ns)
		TIME(&cells, events_took, event->value_ns);
	if (event->value_bytes)
		SIZE(&cells, events_size, event->value_bytes);
	TEXT(&cells, events_detail, "%s", event->detail);
	print_row(sink, "events", &cells);
}

int td_verb_events(int argc, char **argv)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_events};
	struct sink sink = {0};
	int status;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-f") || !strcmp(argv[i], "--follow"))
			msg.events.follow = 1;
		else if (!strcmp(argv[i], "--json"))
			sink.json = true;
		else
			return td_cli_fail(
				"\"%.64s\" is not an option of events: expected -f or --json",
				argv[i]);
	}
	if (sink.json)
		td_json_begin(&sink.out, stdout);
	status = td_cli_ask(&msg, event_row, &sink);
	if (sink.json)
		td_json_end(&sink.out);
	return status;
}

/*
 * Executes the separate program of a verb that needs more libraries than libc. `what` says how the
 * user can get that program.
 */
static int become(
	char **argv, const char *const *candidates, const char *variable, const char *what)
{
	char path[4096];

	td_output_flush();
	if (!td_cli_find(path, sizeof(path), variable, candidates))
		return td_cli_fail(
			"%s is not in the folder of this program: %s, or set %s to its path",
			candidates[0], what, variable);
	execv(path, argv);
	return td_cli_fail("%s: %s", path, strerror(errno));
}

int td_verb_top(int argc, char **argv)
{
	static const char *const candidates[] = {"tandem-top", "../top/tandem-top", NULL};

	(void)argc;
	return become(argv, candidates, "TANDEM_TOP", "install it");
}

int td_verb_web(int argc, char **argv)
{
	static const char *const candidates[] = {"tandem-web", "../web/tandem-web", NULL};

	(void)argc;
	return become(argv, candidates, "TANDEM_WEB",
		"install libmicrohttpd-dev (Debian) or libmicrohttpd-devel (Fedora) and build "
		"tandem again");
}

int td_verb_profile(int argc, char **argv)
{
	static const char *const candidates[] = {
		"tandem-profile", "../profiler/tandem-profile", NULL};

	(void)argc;
	return become(argv, candidates, "TANDEM_PROFILE",
		"install libsqlite3-dev and libblas-dev (Debian) or sqlite-devel and blas-devel "
		"(Fedora) and build tandem again");
}

/*
 * The verb model. The program tandem-profile has the database of models, so that program shows
 * them.
 */
int td_verb_model(int argc, char **argv)
{
	static char profile[] = "profile";
	char **all = calloc((size_t)argc + 2, sizeof(*all));
	int status;

	if (!all)
		return td_cli_fail("no memory");
	all[0] = profile;
	memcpy(all + 1, argv, (size_t)argc * sizeof(*all));
	status = td_verb_profile(argc + 1, all);
	free(all);
	return status;
}
