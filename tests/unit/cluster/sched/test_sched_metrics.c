/* The metrics of a scheduler: the text, and the file that a scheduler writes. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "base/time.h"
#include "cluster/engine/local.h"
#include "cluster/sched/sched_metrics.h"
#include "cluster/sched/scheduler.h"
#include "cluster/state/memory.h"

#define S TD_NS_PER_S

static bool has(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	return at && (at == text || at[-1] == '\n') && at[strlen(line)] == '\n';
}

TEST(who_does_not_lead_has_counters_and_knows_no_jobs)
{
	const struct td_sched_counts counts = {
		.orders = {[TD_ORDER_PLACE] = 3, [TD_ORDER_REQUEUE] = 1},
		.steps = 8,
		.step_ns = 1500000000};
	struct td_text text = {0};

	td_sched_metrics_write(&counts, NULL, &text);
	CHECK(has(text.text, "# TYPE tandem_sched_leads gauge"));
	CHECK(has(text.text, "tandem_sched_leads 0"));
	CHECK(has(text.text, "# TYPE tandem_sched_placements_total counter"));
	CHECK(has(text.text, "tandem_sched_placements_total 3"));
	CHECK(has(text.text, "tandem_sched_evictions_total 1"));
	CHECK(has(text.text, "tandem_sched_steps_total 8"));
	CHECK(has(text.text, "tandem_sched_step_seconds_total 1.5"));
	CHECK(!strstr(text.text, "tandem_sched_jobs_waiting"));
	td_text_deinit(&text);
}

/* Reads the file of the metrics. Returns its text, "" if there is none. */
static const char *read_file(const char *path)
{
	static char text[8192];

	return td_file_read(path, text, sizeof(text)) ? "" : text;
}

TEST(a_scheduler_writes_what_it_has_done_and_what_waits)
{
	char folder[] = "/tmp/tandem-test.XXXXXX", path[64];
	struct td_scheduler_options options = {
		.brain = td_brain_default, .name = "it", .lease_s = 10, .period_ns = S};
	struct td_brain_request request = {.kind = "k", .gpus = 1, .guaranteed = true};
	struct td_memory_store *store = td_memory_store_new();
	struct td_state *state = store ? td_memory_open(store) : NULL;
	struct td_scheduler *sched;
	struct td_local local;

	CHECK(state && mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/tandem.prom", folder);
	options.metrics = path;
	options.brain.shape.nodes_max = options.brain.shape.node_gpus_max = 4;
	options.brain.shape.jobs_max = options.brain.shape.kinds_max = 8;
	CHECK_EQ(td_local_init(&local, 8, 4), 0);
	td_local_node(&local, "node1", 2);
	for (uint32_t k = 0; k < 3; k++) {
		snprintf(request.id, sizeof(request.id), "%u", k);
		CHECK(td_local_submit(&local, &request));
	}
	sched = td_scheduler_new(&options, &local.engine, state);
	CHECK(sched);
	for (uint64_t now = 10 * S; now < 20 * S; now += S)
		CHECK(td_scheduler_turn(sched, now) <= now + 2 * S);
	CHECK(has(read_file(path), "tandem_sched_leads 1"));
	CHECK(has(read_file(path), "tandem_sched_nodes 1"));
	CHECK(has(read_file(path), "tandem_sched_gpus_up 2"));
	CHECK(has(read_file(path), "tandem_sched_jobs_running 2"));
	CHECK(has(read_file(path), "tandem_sched_jobs_waiting 1"));
	CHECK(has(read_file(path), "tandem_sched_placements_total 2"));
	CHECK(has(read_file(path), "tandem_sched_evictions_total 0"));
	td_scheduler_free(sched);
	td_local_deinit(&local);
	td_state_free(state);
	td_memory_store_free(store);
	CHECK(!unlink(path) && !rmdir(folder)); /* nothing else was left there */
}
