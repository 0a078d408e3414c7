/* The record of a node: from a round of the daemon, to JSON and back, and when it differs. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cluster/node/record.h"
#include "gpu/nvml.h"
#include "view/snapshot.h"

#define GIB (1ull << 30)

static struct td_snapshot snapshot;
static struct td_record record, other;
static uint32_t load_ppm[TD_RECORD_GPUS];

static struct td_msg_gpu *add_gpu(uint32_t index)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_gpu};

	msg.gpu.index = index;
	memset(msg.gpu.gpu, (int)index + 1, 16);
	strcpy(msg.gpu.name, "NVIDIA \"H100\"");
	msg.gpu.total_bytes = 80 * GIB;
	msg.gpu.capacity_bytes = 78 * GIB;
	msg.gpu.demanded_bytes = 30 * GIB;
	CHECK_EQ(td_snapshot_take(&snapshot, &msg), 0);
	load_ppm[snapshot.gpu_count - 1] = 250000;
	return &snapshot.gpus[snapshot.gpu_count - 1];
}

static struct td_msg_job *add_job(const char *name, uint32_t gpu)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_job};

	strcpy(msg.job.job, name);
	strcpy(msg.job.name, "secret.py");
	strcpy(msg.job.class, "besteffort");
	strcpy(msg.job.state, "running");
	msg.job.gpu = gpu;
	msg.job.demanded_bytes = GIB;
	CHECK_EQ(td_snapshot_take(&snapshot, &msg), 0);
	return &snapshot.jobs[snapshot.job_count - 1].said;
}

static void begin(void)
{
	td_snapshot_clear(&snapshot);
	memset(&record, 0, sizeof(record));
	strcpy(record.node, "node1");
	add_gpu(0);
	add_gpu(1);
	add_job("17.a", 0);
}

static void take(void)
{
	td_record_take(&record, &snapshot, load_ppm);
}

TEST(a_record_has_room_load_and_jobs_but_no_names_of_programs)
{
	struct td_text text = {0};

	begin();
	load_ppm[1] = TD_RECORD_UNKNOWN;
	take();
	td_record_write(&record, &text);
	CHECK(!text.failed);
	CHECK(!strstr(text.text, "secret.py"));
	CHECK_EQ(td_record_read(text.text, text.length, &other), 0);
	CHECK_STR(other.node, "node1");
	CHECK(other.answers);
	CHECK_EQ(other.gpus, 2);
	CHECK_STR(other.gpu[0].uuid, "GPU-01010101-0101-0101-0101-010101010101");
	CHECK_STR(other.gpu[0].name, "NVIDIA \"H100\"");
	CHECK_EQ(other.gpu[0].room_bytes, 48 * GIB);
	CHECK_EQ(other.gpu[0].load_ppm, 250000);
	CHECK(other.gpu[1].load_ppm == TD_RECORD_UNKNOWN);
	CHECK(other.gpu[0].accepts);
	CHECK_EQ(other.jobs, 1);
	CHECK_STR(other.job[0].job, "17.a");
	CHECK_STR(other.job[0].class, "besteffort");
	CHECK(!td_record_differs(&record, &other));
	td_text_deinit(&text);
}

TEST(a_gpu_accepts_unless_it_is_lost_broken_or_judged_overloaded)
{
	begin();
	strcpy(snapshot.gpus[0].monitor, "overlimit");
	strcpy(snapshot.gpus[1].health, "broken");
	take();
	CHECK(!record.gpu[0].accepts && !record.gpu[1].accepts);
	snapshot.gpus[0].accepts = 1;
	snapshot.gpus[1].health[0] = 0;
	snapshot.gpus[1].known = TD_GPU_IS_LOST;
	take();
	CHECK(record.gpu[0].accepts && !record.gpu[1].accepts);
}

TEST(what_a_scheduler_decides_by_makes_a_difference)
{
	begin();
	take();
	other = record;
	record.gpu[0].load_ppm += 50000;
	record.gpu[0].room_bytes -= 4 * GIB;
	strcpy(record.job[0].state, "waiting");
	CHECK(!td_record_differs(&other, &record));
	record.gpu[0].load_ppm += 1;
	CHECK(td_record_differs(&other, &record));
	record = other;
	record.gpu[0].room_bytes -= 5 * GIB;
	CHECK(td_record_differs(&other, &record));
	record = other;
	record.gpu[1].accepts = false;
	CHECK(td_record_differs(&other, &record));
	record = other;
	record.gpu[1].load_ppm = TD_RECORD_UNKNOWN;
	CHECK(td_record_differs(&other, &record));
	record = other;
	strcpy(record.job[0].class, "guaranteed");
	CHECK(td_record_differs(&other, &record));
	record = other;
	record.answers = false;
	CHECK(td_record_differs(&other, &record));
}

TEST(more_jobs_than_fit_are_counted)
{
	struct td_text text = {0};

	begin();
	for (unsigned i = 0; i < TD_RECORD_JOBS + 3; i++)
		add_job("18.b", 1);
	take();
	CHECK_EQ(record.jobs, TD_RECORD_JOBS);
	CHECK_EQ(record.more_jobs, 4);
	td_record_write(&record, &text);
	CHECK_EQ(td_record_read(text.text, text.length, &other), 0);
	CHECK_EQ(other.more_jobs, 4);
	td_text_deinit(&text);
	td_snapshot_deinit(&snapshot);
}

TEST(other_values_are_refused)
{
	static const char *const bad[] = {"", "[]", "{}", "{\"gpus\":[]}",
		"{\"gpus\":{},\"jobs\":[]}", "{\"gpus\":[1],\"jobs\":[]}",
		"{\"gpus\":[{\"index\":-1}],\"jobs\":[]}",
		"{\"gpus\":[{\"index\":4294967296}],\"jobs\":[]}",
		"{\"gpus\":[{\"accepts\":1}],\"jobs\":[]}",
		"{\"gpus\":[],\"jobs\":[{\"class\":\"12345678901234567\"}]}",
		"{\"gpus\":[],\"jobs\":[],\"node\":5}"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (td_record_read(bad[i], strlen(bad[i]), &other) != -EBADMSG)
			test_fail(__FILE__, __LINE__, "%s", bad[i]);
}
