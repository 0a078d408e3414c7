/*
 * The growth of the daemon's work with the number of jobs of one user. The daemon's files are
 * compiled so that each basic block calls __sanitizer_cov_trace_pc(): work is counted, not timed,
 * so the figures are the same on every machine. Twice as many jobs may cost a little more than
 * twice the work; four times as much would show a loop within a loop.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "daemon/memory/overhead.h"
#include "daemon/memory/quota.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/node/tenant.h"

#define JOBS_MAX 512
#define MIB      (1ull << 20)
#define NOW_NS   1000000000ull

void __sanitizer_cov_trace_pc(void);

static uint64_t blocks;

void __sanitizer_cov_trace_pc(void)
{
	blocks++;
}

static struct td_node node;

static void ignore_msg(void *peer, const struct td_msg *msg)
{
	(void)peer;
	(void)msg;
}

static void ignore_gate(void *peer, uint32_t word, const struct td_pacing *pacing)
{
	(void)peer;
	(void)word;
	(void)pacing;
}

static void ignore_others(void *peer, uint32_t slot, uint64_t bytes)
{
	(void)peer;
	(void)slot;
	(void)bytes;
}

static void ignore_event(void *arg, const struct td_event *event)
{
	(void)arg;
	(void)event;
}

static void begin(void)
{
	const struct td_node_io io = {.send = ignore_msg,
		.gate = ignore_gate,
		.others = ignore_others,
		.event = ignore_event};

	if (td_node_init(&node, &io))
		abort();
}

static void come(unsigned count, enum td_class class, enum td_class upgrade)
{
	for (unsigned i = 0; i < count; i++) {
		struct td_msg_hello hello = {.class = (uint8_t) class,
			.upgrade = upgrade == class ? 0 : (uint8_t)(1 + upgrade),
			.weight = 1,
			.abi = TD_PAGES_ABI};
		struct td_msg msg = {.type = TD_MSG_TYPE_attach};
		struct td_process *process;

		snprintf(hello.job, sizeof(hello.job), "job-%u", i);
		strcpy(hello.name, "same");
		process = td_node_hello(
			&node, &node, 1000 + (pid_t)i, td_identity_local(1000), &hello, NOW_NS);
		memset(msg.attach.gpu, 1, 16);
		msg.attach.total_bytes = 1024 * MIB;
		if (!process || td_node_message(&node, process, &msg, NOW_NS))
			abort();
	}
}

/* The work of one call beside so many jobs. */
static uint64_t work(unsigned jobs, enum td_class class, enum td_class upgrade,
	const char *quota_jobs, void (*call)(void))
{
	uint64_t before;

	begin();
	CHECK_EQ(td_options_set(&node.options, "quota.jobs", quota_jobs, NULL), 0);
	come(jobs, class, upgrade);
	(void)td_node_step(&node, NOW_NS);
	before = blocks;
	call();
	before = blocks - before;
	td_node_deinit(&node);
	return before;
}

static void grows_in_proportion(
	enum td_class class, enum td_class upgrade, const char *quota_jobs, void (*call)(void))
{
	uint64_t few = work(JOBS_MAX / 4, class, upgrade, quota_jobs, call),
		 more = work(JOBS_MAX / 2, class, upgrade, quota_jobs, call),
		 many = work(JOBS_MAX, class, upgrade, quota_jobs, call);

	printf("# %llu, %llu and %llu blocks for %u, %u and %u jobs\n", (unsigned long long)few,
		(unsigned long long)more, (unsigned long long)many, JOBS_MAX / 4, JOBS_MAX / 2,
		JOBS_MAX);
	CHECK(few > 0);
	CHECK(more <= 5 * few / 2);
	CHECK(many <= 5 * more / 2);
}

static void check_class(void)
{
	(void)td_node_check_job(&node, td_identity_local(1000), "same", "class", "online", NULL);
}

static void check_class_of_everybody(void)
{
	(void)td_node_check_job(&node, td_identity_local(0), "same", "class", "online", NULL);
}

static void set_weight(void)
{
	CHECK_EQ(td_node_set_job(
			 &node, td_identity_local(1000), "same", "weight", "3", NOW_NS, NULL),
		0);
}

static void check_new(void)
{
	(void)td_tenant_check_new(&node, td_identity_local(1000), TD_CLASS_GUARANTEED, "10%", NULL);
}

static void judge(void)
{
	td_quota_gather(&node);
	td_tenant_step(&node, NOW_NS);
}

static void step(void)
{
	(void)td_node_step(&node, NOW_NS);
}

/* NVML's rows are in an order of its own. */
static void a_sample_comes(void)
{
	static struct td_nvml_use uses[TD_CLIENT_MAX];
	struct td_nvml_gpu gpu = {.total_bytes = 1024 * MIB};
	uint32_t count = 0;
	struct td_list *it;

	memset(gpu.uuid, 1, 16);
	td_list_for_each (it, &node.processes)
		uses[count++].pid = (uint32_t)td_container_of(it, struct td_process, of_node)->pid;
	td_overhead_seen(&node, &gpu, uses, count);
}

TEST(a_step_beside_many)
{
	grows_in_proportion(TD_CLASS_BESTEFFORT, TD_CLASS_BESTEFFORT, "none", step);
}

TEST(a_sample_of_nvml)
{
	grows_in_proportion(TD_CLASS_BESTEFFORT, TD_CLASS_BESTEFFORT, "none", a_sample_comes);
}

TEST(the_check_of_a_setting)
{
	grows_in_proportion(TD_CLASS_BESTEFFORT, TD_CLASS_BESTEFFORT, "none", check_class);
	grows_in_proportion(TD_CLASS_BESTEFFORT, TD_CLASS_BESTEFFORT, "1", check_class);
	grows_in_proportion(
		TD_CLASS_BESTEFFORT, TD_CLASS_BESTEFFORT, "none", check_class_of_everybody);
}

TEST(a_setting_of_many_jobs)
{
	grows_in_proportion(TD_CLASS_BESTEFFORT, TD_CLASS_BESTEFFORT, "none", set_weight);
}

TEST(the_question_whether_a_job_would_be_admitted)
{
	grows_in_proportion(TD_CLASS_GUARANTEED, TD_CLASS_GUARANTEED, "none", check_new);
	grows_in_proportion(TD_CLASS_BESTEFFORT, TD_CLASS_GUARANTEED, "0", check_new);
}

TEST(the_judgement_of_those_who_wait_for_their_quota)
{
	grows_in_proportion(TD_CLASS_BESTEFFORT, TD_CLASS_GUARANTEED, "0", judge);
	grows_in_proportion(TD_CLASS_BESTEFFORT, TD_CLASS_GUARANTEED, "1", judge);
	grows_in_proportion(TD_CLASS_BESTEFFORT, TD_CLASS_GUARANTEED, "none", judge);
	grows_in_proportion(TD_CLASS_GUARANTEED, TD_CLASS_GUARANTEED, "none", judge);
}
