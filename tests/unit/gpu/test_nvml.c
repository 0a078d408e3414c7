/* The daemon's view of NVML, and the thread that waits for it, against made-up libraries. */
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/time.h"
#include "gpu/figures.h"
#include "gpu/nvml.h"
#include "gpu/nvml_abi.h"
#include "gpu/sampler.h"
#include "unit/gpu/fake_nvml.h"
#include "unit/gpu/fake_nvml.h"

#define FAKE   FAKE_DIR "libfake-nvml.so"
#define PERIOD (5 * TD_NS_PER_MS)
#define NEVER  (3600 * TD_NS_PER_S)

static struct td_sample sample;

/* The next sample; the bound is for a hang alone. */
static void await(struct td_sampler *sampler)
{
	struct pollfd fd = {td_sampler_fd(sampler), POLLIN, 0};

	CHECK_EQ(poll(&fd, 1, 20000), 1);
	td_sampler_take(sampler, &sample);
}

static bool is_readable(struct td_sampler *sampler)
{
	struct pollfd fd = {td_sampler_fd(sampler), POLLIN, 0};

	return poll(&fd, 1, 0) == 1;
}

TEST(a_library_that_is_not_there_is_absent)
{
	struct td_nvml *nvml;

	CHECK_EQ(td_nvml_open("libno-such-nvml.so", &nvml), TD_NVML_ABSENT);
}

TEST(what_a_gpu_does_not_tell_is_unknown)
{
	struct td_nvml_gpu gpus[TD_NVML_GPU_MAX];
	struct td_nvml *nvml;

	fake_nvml.count = 3;
	fake_nvml.utilisation = 37;
	CHECK_EQ(td_nvml_open(FAKE, &nvml), 0);
	CHECK_EQ(td_nvml_sample(nvml, gpus), 2); /* the part of a GPU is left out */
	CHECK_STR(gpus[1].name, "fake 2");
	CHECK_EQ(gpus[1].uuid[15], 2);
	CHECK_EQ(gpus[1].total_bytes, 200);
	CHECK_EQ(gpus[1].used_bytes, 40);
	CHECK_EQ(gpus[1].utilisation_ppm, 370000);
	CHECK_EQ(gpus[1].known, TD_GPU_KNOWS_MEMORY | TD_GPU_KNOWS_UTILISATION);
	td_nvml_close(nvml);
	CHECK_EQ(fake_nvml.users, 0);
}

TEST(what_processes_have_is_told_as_far_as_it_is_known)
{
	struct td_nvml_use uses[TD_NVML_USE_MAX];
	struct td_nvml_gpu gpus[TD_NVML_GPU_MAX];
	struct td_nvml *nvml;

	fake_nvml.count = 2;
	CHECK_EQ(td_nvml_open(FAKE, &nvml), 0);
	CHECK_EQ(td_nvml_sample(nvml, gpus), 2);
	CHECK_EQ(td_nvml_uses(nvml, gpus, 2, uses), 2);
	CHECK(uses[1].gpu == 1 && uses[1].pid == 102 && uses[1].bytes == 30);
	fake_nvml.lost = NVML_ERROR_GPU_IS_LOST;
	CHECK_EQ(td_nvml_uses(nvml, gpus, 2, uses), 0);
	fake_nvml.lost = 0;
	td_nvml_close(nvml);
	CHECK_EQ(td_nvml_open(FAKE_DIR "libfake-old-nvml.so", &nvml), 0);
	CHECK_EQ(td_nvml_sample(nvml, gpus), 1);
	CHECK_EQ(td_nvml_uses(nvml, gpus, 1, uses), 0);
	td_nvml_close(nvml);
}

TEST(an_old_driver_tells_less)
{
	struct td_nvml_gpu gpus[TD_NVML_GPU_MAX];
	struct td_nvml *nvml;

	CHECK_EQ(td_nvml_open(FAKE_DIR "libfake-old-nvml.so", &nvml), 0);
	CHECK_EQ(td_nvml_sample(nvml, gpus), 1);
	CHECK_EQ(gpus[0].known, TD_GPU_KNOWS_MEMORY);
	CHECK_STR(gpus[0].name, "");
	td_nvml_close(nvml);
}

TEST(gpus_that_are_lost_are_said_to_be)
{
	struct td_nvml_gpu gpus[TD_NVML_GPU_MAX];
	struct td_nvml *nvml;

	fake_nvml.count = 2;
	CHECK_EQ(td_nvml_open(FAKE, &nvml), 0);
	CHECK_EQ(td_nvml_sample(nvml, gpus), 2);
	CHECK(!gpus[0].lost && !gpus[1].lost);
	fake_nvml.lost = NVML_ERROR_GPU_IS_LOST;
	CHECK_EQ(td_nvml_sample(nvml, gpus), 2);
	CHECK(gpus[0].lost && gpus[1].lost && !gpus[0].known);
	CHECK_EQ(gpus[1].index, 1);
	CHECK_EQ(gpus[1].uuid[15], 2);
	fake_nvml.lost = 0;
	td_nvml_close(nvml);
}

TEST(a_glance_reads_each_buffered_sample_once)
{
	struct td_figure figures[TD_NVML_FIGURES_MAX];
	struct td_nvml_gpu gpus[TD_NVML_GPU_MAX];
	struct td_nvml *nvml;

	fake_nvml.count = 1;
	fake_nvml.clock = 0;
	CHECK_EQ(td_nvml_open(FAKE, &nvml), 0);
	CHECK_EQ(td_nvml_sample(nvml, gpus), 1);
	CHECK_EQ(td_nvml_glance(nvml, &gpus[0], 100 * TD_NS_PER_S, figures), 0);
	fake_nvml.clock = 1500;
	fake_nvml.buffered = 3;
	CHECK_EQ(td_nvml_glance(nvml, &gpus[0], 100 * TD_NS_PER_S, figures), 3);
	CHECK_EQ(figures[0].time_ns, 98 * TD_NS_PER_S);
	CHECK_EQ(figures[0].utilisation_ppm, 100000);
	CHECK_EQ(figures[2].time_ns, 100 * TD_NS_PER_S);
	CHECK_EQ(figures[2].utilisation_ppm, 300000);
	CHECK_EQ(figures[2].sm_mhz, 1500);
	CHECK_EQ(figures[2].throttle, NVML_CLOCK_REASON_THERMAL);
	CHECK_EQ(gpus[0].sm_max_mhz, 2000);
	fake_nvml.buffered = 4;
	CHECK_EQ(td_nvml_glance(nvml, &gpus[0], 101 * TD_NS_PER_S, figures), 1);
	CHECK_EQ(figures[0].utilisation_ppm, 400000);
	/* Nothing is new but the clock: the utilisation is what it was. */
	CHECK_EQ(td_nvml_glance(nvml, &gpus[0], 102 * TD_NS_PER_S, figures), 1);
	CHECK_EQ(figures[0].utilisation_ppm, 400000);
	td_nvml_close(nvml);
	fake_nvml.clock = 0;
	fake_nvml.buffered = 0;
}

TEST(an_xid_is_told_once_with_its_gpu)
{
	struct td_nvml_gpu gpus[TD_NVML_GPU_MAX];
	struct td_nvml *nvml;
	uint32_t index = 9, xid = 0;

	CHECK_EQ(td_nvml_open(FAKE, &nvml), 0);
	CHECK(!td_nvml_xid(nvml, &index, &xid));
	CHECK_EQ(td_nvml_sample(nvml, gpus), 1);
	CHECK(!td_nvml_xid(nvml, &index, &xid));
	fake_nvml.xid = 31;
	CHECK(td_nvml_xid(nvml, &index, &xid));
	CHECK_EQ(index, 0);
	CHECK_EQ(xid, 31);
	CHECK(!td_nvml_xid(nvml, &index, &xid));
	CHECK_EQ(fake_nvml.event_sets, 1);
	td_nvml_close(nvml);
	CHECK_EQ(fake_nvml.event_sets, 0);
}

TEST(gpm_tells_the_activity_between_two_samples)
{
	struct td_nvml_gpu gpus[TD_NVML_GPU_MAX];
	struct td_nvml *nvml;

	fake_nvml.gpm = 40;
	CHECK_EQ(td_nvml_open(FAKE, &nvml), 0);
	CHECK_EQ(td_nvml_sample(nvml, gpus), 1);
	CHECK(!(gpus[0].known & TD_GPU_KNOWS_SM_ACTIVITY));
	CHECK_EQ(td_nvml_sample(nvml, gpus), 1);
	CHECK(gpus[0].known & TD_GPU_KNOWS_SM_ACTIVITY);
	CHECK_EQ(gpus[0].sm_activity_ppm, 400000);
	fake_nvml.gpm = 101; /* nonsense */
	CHECK_EQ(td_nvml_sample(nvml, gpus), 1);
	CHECK(!(gpus[0].known & TD_GPU_KNOWS_SM_ACTIVITY));
	CHECK_EQ(fake_nvml.gpm_samples, 2);
	td_nvml_close(nvml);
	CHECK_EQ(fake_nvml.gpm_samples, 0);
	fake_nvml.gpm = 0;
	fake_nvml.count = 2;
}

TEST(the_log_tells_whose_an_xid_is)
{
	char path[] = "/tmp/xid-log-XXXXXX";
	int fd = mkstemp(path);
	struct td_sampler *sampler;

	fake_nvml.clock = 1500;
	CHECK_EQ(td_sampler_new(FAKE, NEVER, &sampler), 0);
	td_sampler_set_glance(sampler, PERIOD);
	td_sampler_set_log(sampler, path);
	td_sampler_want(sampler, true);
	await(sampler);
	/* Neither the line of the second GPU nor that of another Xid is it. */
	dprintf(fd, "6,1,2,-;NVRM: Xid (PCI:0000:02:00): 31, pid=11\n"
		    "6,1,2,-;NVRM: Xid (PCI:0000:01:00): 13, pid=12\n");
	fake_nvml.xid = 31;
	do
		await(sampler);
	while (!sample.gpus[0].xid);
	CHECK_EQ(sample.gpus[0].xid_pid, 0);
	dprintf(fd, "6,1,2,-;NVRM: Xid (PCI:0000:01:00): 31, pid=13\n");
	do
		await(sampler);
	while (!sample.gpus[0].xid_pid);
	CHECK_EQ(sample.gpus[0].xid_pid, 13);
	/* The next one is not his for that. */
	fake_nvml.xid = 43;
	do
		await(sampler);
	while (sample.gpus[0].xid != 43);
	CHECK_EQ(sample.gpus[0].xid_pid, 0);
	td_sampler_free(sampler);
	close(fd);
	unlink(path);
	fake_nvml.clock = 0;
}

TEST(between_samples_glances_keep_coming)
{
	struct td_sampler *sampler;
	uint64_t sampled_ns, glanced_ns;

	fake_nvml.clock = 1500;
	CHECK_EQ(td_sampler_new(FAKE, NEVER, &sampler), 0);
	td_sampler_set_glance(sampler, PERIOD);
	td_sampler_want(sampler, true);
	await(sampler);
	sampled_ns = sample.time_ns;
	glanced_ns = sample.glance_ns;
	CHECK(sampled_ns && glanced_ns);
	fake_nvml.clock = 900;
	fake_nvml.xid = 79;
	do
		await(sampler);
	while (sample.gpus[0].sm_mhz != 900 || !sample.gpus[0].xid);
	CHECK_EQ(sample.time_ns, sampled_ns);
	CHECK(sample.glance_ns >= glanced_ns + PERIOD);
	CHECK_EQ(sample.gpus[0].xid, 79);
	CHECK_EQ(sample.gpus[1].xid, 0);
	/* A sample does not forget it. */
	td_sampler_ask(sampler);
	while (sample.time_ns == sampled_ns)
		await(sampler);
	CHECK_EQ(sample.gpus[0].xid, 79);
	td_sampler_free(sampler);
	fake_nvml.clock = 0;
}

TEST(a_shorter_time_between_glances_counts_at_once)
{
	struct td_sampler *sampler;
	uint64_t glanced_ns;

	CHECK_EQ(td_sampler_new(FAKE, NEVER, &sampler), 0);
	td_sampler_set_glance(sampler, NEVER);
	td_sampler_want(sampler, true);
	await(sampler);
	glanced_ns = sample.glance_ns;
	td_sampler_set_glance(sampler, PERIOD);
	await(sampler);
	CHECK(sample.glance_ns > glanced_ns);
	td_sampler_free(sampler);
}

TEST(nobody_is_asked_while_nobody_wants_to_know)
{
	struct td_sampler *sampler;
	unsigned before = fake_nvml.samples;

	CHECK_EQ(td_sampler_new(FAKE, NEVER, &sampler), 0);
	td_sampler_take(sampler, &sample);
	CHECK_EQ(sample.time_ns, 0);
	td_sampler_ask(sampler);
	await(sampler);
	CHECK_EQ(fake_nvml.samples, before + 1);
	CHECK_EQ(sample.gpu_count, 2);
	CHECK(!is_readable(sampler));
	/* Asked in the middle of nothing, it answers once more. */
	td_sampler_ask(sampler);
	await(sampler);
	CHECK_EQ(fake_nvml.samples, before + 2);
	td_sampler_free(sampler);
	CHECK_EQ(fake_nvml.users, 0);
}

TEST(while_wanted_samples_keep_coming)
{
	struct td_sampler *sampler;
	uint64_t first;

	CHECK_EQ(td_sampler_new(FAKE, PERIOD, &sampler), 0);
	td_sampler_want(sampler, true);
	await(sampler);
	first = sample.time_ns;
	await(sampler);
	CHECK(sample.time_ns >= first + PERIOD);
	td_sampler_set_period(sampler, NEVER);
	td_sampler_want(sampler, false);
	td_sampler_free(sampler);
}

TEST(a_driver_that_comes_back_is_found_again)
{
	struct td_sampler *sampler;

	CHECK_EQ(td_sampler_new(FAKE, NEVER, &sampler), 0);
	fake_nvml.lost = NVML_ERROR_UNKNOWN;
	td_sampler_ask(sampler);
	await(sampler);
	CHECK_EQ(sample.gpu_count, 0);
	CHECK(sample.time_ns);
	/* Lost GPUs are believed to be so once a library that was opened anew says it, too. */
	fake_nvml.lost = NVML_ERROR_GPU_IS_LOST;
	fake_nvml.samples = 0;
	td_sampler_ask(sampler);
	await(sampler);
	CHECK_EQ(sample.gpu_count, 2);
	CHECK(sample.gpus[0].lost);
	CHECK_EQ(fake_nvml.samples, 2);
	CHECK_EQ(fake_nvml.users, 1);
	fake_nvml.lost = 0;
	td_sampler_ask(sampler);
	await(sampler);
	CHECK_EQ(sample.gpu_count, 2);
	td_sampler_free(sampler);
}

TEST(without_nvml_the_answer_comes_at_once_and_only_once)
{
	struct td_sampler *sampler;

	fake_nvml.refuses = 1;
	fake_nvml.refused = 0;
	CHECK_EQ(td_sampler_new(FAKE, 1, &sampler), 0);
	td_sampler_want(sampler, true);
	await(sampler);
	CHECK_EQ(sample.gpu_count, 0);
	/* Its period of 1 ns is long over. */
	td_sampler_ask(sampler);
	await(sampler);
	CHECK_EQ(fake_nvml.refused, 2);
	td_sampler_free(sampler);
	fake_nvml.refuses = 0;
}

TEST(a_call_that_hangs_holds_up_nobody)
{
	struct td_sampler *sampler;

	CHECK_EQ(sem_init(&fake_nvml.entered, 0, 0), 0);
	CHECK_EQ(sem_init(&fake_nvml.go, 0, 0), 0);
	fake_nvml.count = 1;
	fake_nvml.blocked = 1;
	CHECK_EQ(td_sampler_new(FAKE, NEVER, &sampler), 0);
	td_sampler_ask(sampler);
	CHECK_EQ(sem_wait(&fake_nvml.entered), 0);
	td_sampler_ask(sampler);
	td_sampler_want(sampler, true);
	td_sampler_take(sampler, &sample);
	CHECK_EQ(sample.time_ns, 0);
	fake_nvml.blocked = 0;
	sem_post(&fake_nvml.go);
	await(sampler);
	CHECK_EQ(sample.gpu_count, 1);
	td_sampler_free(sampler);
}
