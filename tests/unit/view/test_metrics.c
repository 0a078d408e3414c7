/* A snapshot as metrics: each line as Prometheus reads it. */
#include <string.h>

#include "gpu/nvml.h"
#include "test.h"
#include "view/metrics.h"

#define S 1000000000ull

static struct td_snapshot snapshot;
static struct td_text text;

static void begin(void)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_gpu};

	td_snapshot_deinit(&snapshot);
	td_text_clear(&text);
	memset(msg.gpu.gpu, 0xab, 16);
	strcpy(msg.gpu.name, "NVIDIA H100");
	msg.gpu.capacity_bytes = 80ull << 30;
	msg.gpu.known = TD_GPU_KNOWS_UTILISATION;
	msg.gpu.util_ppm = 250000;
	CHECK_EQ(td_snapshot_take(&snapshot, &msg), 0);
}

static struct td_msg_job *job(uint32_t pid, const char *name)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_job};

	snprintf(msg.job.job, sizeof(msg.job.job), "%u.abc", pid);
	snprintf(msg.job.name, sizeof(msg.job.name), "%s", name);
	strcpy(msg.job.state, "running");
	msg.job.pid = pid;
	CHECK_EQ(td_snapshot_take(&snapshot, &msg), 0);
	return &snapshot.jobs[snapshot.job_count - 1].said;
}

static void end(void)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_end, .end.time_ns = S};

	CHECK_EQ(td_snapshot_take(&snapshot, &msg), 1);
	td_metrics_write(&text, &snapshot);
	CHECK(!text.failed);
}

static bool has(const char *line)
{
	const char *at = strstr(text.text, line);

	return at && (at == text.text || at[-1] == '\n') && at[strlen(line)] == '\n';
}

static unsigned count(const char *part)
{
	unsigned n = 0;

	for (const char *at = text.text; (at = strstr(at, part)); at++)
		n++;
	return n;
}

#define GPU "gpu=\"GPU-abababab-abab-abab-abab-abababababab\""

TEST(a_sample_has_unit_and_labels)
{
	begin();
	job(7, "train")->held_ns = 1500000000;
	end();
	CHECK(has("# TYPE tandem_gpu_capacity_bytes gauge"));
	CHECK(has("tandem_gpu_capacity_bytes{" GPU "} 85899345920"));
	CHECK(has("tandem_gpu_utilisation_ratio{" GPU "} 0.25"));
	CHECK(has("tandem_job_held_seconds_total{" GPU
		  ",job=\"7.abc\",name=\"train\",pid=\"7\"} 1.5"));
	CHECK(has("tandem_processes_running 1"));
}

TEST(what_is_not_known_has_no_sample)
{
	begin();
	(void)job(7, "train");
	end();
	CHECK_EQ(count("tandem_gpu_temperature_celsius"), 0);
	CHECK_EQ(count("tandem_job_limit_bytes"), 0);
}

TEST(labels_are_escaped)
{
	begin();
	(void)job(7, "a\"b\\c\nd\xff");
	end();
	CHECK(strstr(text.text, "name=\"a\\\"b\\\\c?d?\"") != NULL);
}

TEST(rows_beyond_the_bound_are_counted)
{
	begin();
	for (uint32_t i = 0; i < TD_METRICS_JOBS_MAX + 3; i++)
		(void)job(i + 1, "a");
	end();
	CHECK(has("tandem_jobs_left_out 3"));
	CHECK(has("tandem_processes 503"));
	CHECK_EQ(count("\ntandem_job_running{"), TD_METRICS_JOBS_MAX);
}

/* However many processes there are, and all figures of all of them are known. */
TEST(series_of_a_node_are_bounded)
{
	struct td_msg_job *j;
	unsigned lines, families;

	begin();
	for (uint32_t i = 0; i < 4 * TD_METRICS_JOBS_MAX; i++) {
		j = job(i + 1, "a");
		j->metered = 1;
		j->overhead_bytes = j->limit_bytes = j->soft_bytes = j->gpu_time_ns = 1;
		j->duty_ppm = j->sm_share_ppm = j->step_sure_ppm = 1;
		j->step_ns = j->p50_ns = j->p99_ns = j->objective_ns = j->batch = 1;
		strcpy(j->service, "s");
	}
	end();
	lines = count("\ntandem_job_") + count("\ntandem_service_");
	families = count("# TYPE tandem_job_") + count("# TYPE tandem_service_");
	CHECK(families > 30);
	CHECK_EQ(lines, families * TD_METRICS_JOBS_MAX);
	CHECK(has("tandem_jobs_left_out 1500"));
	CHECK(text.length < (4u << 20));
}

TEST(no_two_series_have_the_same_labels)
{
	begin();
	(void)job(0, "in_a_container");
	(void)job(0, "in_a_container");
	(void)job(0, "in_another");
	end();
	CHECK_EQ(count("\ntandem_job_running{"), 2);
	CHECK(has("tandem_jobs_left_out 1"));
}

TEST(a_daemon_that_does_not_answer_is_down)
{
	td_snapshot_deinit(&snapshot);
	td_text_clear(&text);
	td_metrics_write(&text, &snapshot);
	CHECK(has("tandem_up 0"));
}
