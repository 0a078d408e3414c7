/* Figures of a job from made-up rounds of the daemon, and rows of the store from them. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "profiler/figures.h"
#include "profiler/plan.h"
#include "profiler/program.h"
#include "test.h"
#include "view/snapshot.h"

#define S   1000000000ull
#define MS  1000000ull
#define MIB (1ull << 20)

static struct td_snapshot snapshot;

static void begin_round(uint64_t time_ns)
{
	struct td_msg gpu = {.type = TD_MSG_TYPE_gpu};

	td_snapshot_clear(&snapshot);
	gpu.gpu.index = 1;
	strcpy(gpu.gpu.name, "Tesla T4");
	CHECK_EQ(td_snapshot_take(&snapshot, &gpu), 0);
	snapshot.time_ns = time_ns;
}

/* A process that has done `done` units of work: 6 ms of kernels on half of the SMs each. */
static struct td_msg_job *add(const char *id, uint32_t pid, uint64_t done)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_job};

	strcpy(msg.job.job, id);
	strcpy(msg.job.name, id);
	strcpy(msg.job.state, "running");
	msg.job.pid = pid;
	msg.job.gpu = 1;
	msg.job.metered = 1;
	msg.job.launches = 3 * done;
	msg.job.steps = done;
	msg.job.step_ns = 10 * MS;
	msg.job.step_sure_ppm = 1000000;
	msg.job.used_ns = 6 * MS * done;
	msg.job.sm_active_ns = 3 * MS * done;
	msg.job.core_demand_ppm = 250000;
	msg.job.peak_bytes = 64 * MIB;
	msg.job.resident_bytes = 32 * MIB;
	CHECK_EQ(td_snapshot_take(&snapshot, &msg), 0);
	return &snapshot.jobs[snapshot.job_count - 1].said;
}

static bool near(double a, double b)
{
	return a - b < 1e-6 && b - a < 1e-6;
}

TEST(figures_are_of_the_span_alone)
{
	struct td_figures f = {0};
	struct td_program p;

	begin_round(5 * S);
	add("77.abc", 77, 1000);
	CHECK_EQ(td_figures_take(&f, &snapshot, "77."), TD_FIGURES_MEASURED);
	td_figures_begin(&f);
	for (uint64_t i = 1; i <= 20; i++) {
		begin_round(5 * S + i * 100 * MS);
		add("77.abc", 77, 1000 + 10 * i);
		CHECK_EQ(td_figures_take(&f, &snapshot, "77."), TD_FIGURES_MEASURED);
	}
	CHECK_STR(f.job, "77.abc");
	CHECK_EQ(f.span_ns, 2 * S);
	CHECK_EQ(f.rounds, 20);
	td_program_of(&f, "train", "train --steps 9", 42, &p);
	CHECK_STR(p.gpu, "Tesla T4");
	CHECK_STR(p.name, "train");
	CHECK(near(p.seconds, 2) && near(p.utilisation, 0.6) && near(p.sm_activity, 0.3));
	CHECK(near(p.core_demand, 0.25) && near(p.duty, 1) && near(p.launches_per_s, 300));
	CHECK(near(p.steps_per_s, 100) && near(p.step_s, 0.01) && near(p.step_sure, 1));
	CHECK_EQ(p.peak_bytes, 64 * MIB);
	CHECK_EQ(p.resident_bytes, 32 * MIB);
}

TEST(all_processes_of_a_job_count_and_one_that_ends_takes_nothing_back)
{
	struct td_figures f = {0};

	begin_round(1 * S);
	add("77.abc", 77, 100);
	add("77.abc", 78, 500);
	add("7.abc", 7, 100); /* another job: its id only begins alike */
	add("778.abc", 778, 100);
	CHECK_EQ(td_figures_take(&f, &snapshot, "77."), TD_FIGURES_MEASURED);
	td_figures_begin(&f);
	begin_round(2 * S);
	add("77.abc", 77, 110);
	add("77.abc", 78, 520);
	CHECK_EQ(td_figures_take(&f, &snapshot, "77."), TD_FIGURES_MEASURED);
	CHECK_EQ(f.steps, 30);
	begin_round(3 * S);
	add("77.abc", 77, 120);
	CHECK_EQ(td_figures_take(&f, &snapshot, "77."), TD_FIGURES_MEASURED);
	CHECK_EQ(f.steps, 30);
	begin_round(4 * S);
	add("77.abc", 77, 130);
	CHECK_EQ(td_figures_take(&f, &snapshot, "77."), TD_FIGURES_MEASURED);
	CHECK_EQ(f.steps, 40);
}

TEST(a_job_is_not_measured_before_it_launches_nor_on_several_gpus)
{
	struct td_figures f = {0};

	begin_round(1 * S);
	CHECK_EQ(td_figures_take(&f, &snapshot, "77."), TD_FIGURES_ABSENT);
	add("77.abc", 77, 0)->gpu = UINT32_MAX; /* it has no context yet */
	CHECK_EQ(td_figures_take(&f, &snapshot, "77."), TD_FIGURES_ABSENT);
	add("77.abc", 77, 0);
	CHECK_EQ(td_figures_take(&f, &snapshot, "77."), TD_FIGURES_IDLE);
	begin_round(2 * S);
	add("77.abc", 77, 5)->metered = 0;
	CHECK_EQ(td_figures_take(&f, &snapshot, "77."), TD_FIGURES_UNMETERED);
	add("77.abc", 78, 5)->gpu = 0;
	CHECK_EQ(td_figures_take(&f, &snapshot, "77."), TD_FIGURES_SEVERAL);
}

TEST(another_job_on_the_gpu_is_named)
{
	static const char *const prefixes[] = {"77.", "90."};
	struct td_msg others = {.type = TD_MSG_TYPE_others};

	begin_round(1 * S);
	add("77.abc", 77, 5);
	add("90.abc", 90, 5);
	add("5.idle", 5, 5);
	strcpy(snapshot.jobs[2].said.state, "idle");
	add("6.elsewhere", 6, 5)->gpu = 0;
	CHECK(!td_figures_other(&snapshot, 1, prefixes, 2));
	CHECK_STR(td_figures_other(&snapshot, 1, prefixes, 1), "90.abc");
	others.others.gpu = 1;
	others.others.processes = 2;
	CHECK_EQ(td_snapshot_take(&snapshot, &others), 0);
	CHECK_STR(td_figures_other(&snapshot, 1, prefixes, 2), "processes of other users");
}

TEST(speed_is_of_steps_where_both_have_them_else_of_launches)
{
	struct td_program alone = {.steps_per_s = 10, .launches_per_s = 100}, shared = alone;

	shared.steps_per_s = 5;
	shared.launches_per_s = 40;
	CHECK(near(td_program_speed(&alone, &shared), 0.5));
	alone.steps_per_s = 0;
	CHECK(near(td_program_speed(&alone, &shared), 0.4));
	alone.launches_per_s = 0;
	CHECK(near(td_program_speed(&alone, &shared), 0));
}

TEST(steps_that_are_few_or_not_sure_are_none)
{
	struct td_figures f = {.span_ns = S, .steps = 4, .step_ns = MS, .step_sure_ppm = 1000000};
	struct td_program p;

	td_program_of(&f, "a", "a", 0, &p);
	CHECK(near(p.steps_per_s, 0) && near(p.step_s, 0));
	f.steps = 100;
	f.step_sure_ppm = 700000;
	td_program_of(&f, "a", "a", 0, &p);
	CHECK(near(p.steps_per_s, 0));
}

TEST(a_command_that_is_too_long_is_cut)
{
	char words[] = "word", buf[12];
	char *argv[] = {words, words, words, NULL};

	CHECK_STR(td_program_command(buf, sizeof(buf), argv), "word word w");
	argv[1] = NULL;
	CHECK_STR(td_program_command(buf, sizeof(buf), argv), "word");
}

static void check_plan_refused(const char *text, const char *quoted)
{
	struct td_plan plan = {.count = 77};
	struct td_err err = {0};

	CHECK_EQ(td_plan_parse(text, &plan, &err), -EINVAL);
	CHECK(strstr(err.msg, quoted));
	CHECK_EQ(plan.count, 77);
}

TEST(a_plan_has_the_online_programs_first)
{
	struct td_plan plan;
	struct td_err err;

	CHECK_EQ(td_plan_parse("besteffort work  ./beside --sms 8 \n\n # note\n"
			       "online web sh -c 'serve & load'\nbesteffort b x",
			 &plan, &err),
		0);
	CHECK(plan.count == 3 && plan.online_count == 1);
	CHECK_STR(plan.programs[0].name, "web");
	CHECK_STR(plan.programs[0].command, "sh -c 'serve & load'");
	CHECK_STR(plan.programs[1].name, "work");
	CHECK_STR(plan.programs[2].name, "b");
}

TEST(a_plan_that_is_not_valid_is_refused_with_its_line)
{
	check_plan_refused("online a x\nguaranteed b y", "line 2: \"guaranteed\"");
	check_plan_refused("online a;b x", "\"a;b\"");
	check_plan_refused("online a", "\"a\": expected a command");
	check_plan_refused("online a x\nbesteffort a y", "line 2: \"a\" is there twice");
	check_plan_refused("online a x", "both classes");
	check_plan_refused("", "both classes");
}

TEST(shares_ascend_from_1_to_100)
{
	static const char *const bad[] = {
		"", "0", "101", "40,20", "20,20", "20,", ",", "20;30", "x", "-5", "20%%"};
	unsigned percents[TD_PLAN_SHARES];
	struct td_err err;
	uint32_t count;

	CHECK_EQ(td_plan_shares("10,25%,100", percents, &count, &err), 0);
	CHECK(count == 3 && percents[0] == 10 && percents[1] == 25 && percents[2] == 100);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK_EQ(td_plan_shares(bad[i], percents, &count, &err), -EINVAL);
		CHECK(strstr(err.msg, bad[i]));
	}
}
