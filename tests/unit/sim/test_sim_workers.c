/*
 * Tasks give the same results in one process and in several; the error is that of the first task
 * which has one.
 */
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/err.h"
#include "sim/base/random.h"
#include "sim/base/sim.h"
#include "sim/base/workers.h"

#define COUNT 100u

struct result {
	uint64_t sum;
	pid_t pid;
};

static int add_up(void *arg, uint32_t index, void *ret, struct td_err *err)
{
	uint64_t seed = index + 1;
	struct result *result = ret;

	(void)err;
	for (uint32_t i = 0; i < *(uint32_t *)arg; i++)
		result->sum += td_random_below(&seed, 1000);
	result->pid = getpid();
	return 0;
}

static int fail_from_seven(void *arg, uint32_t index, void *ret, struct td_err *err)
{
	(void)arg;
	(void)ret;
	return index < 7 ? 0 : td_err_set(err, -EDOM, "task %u", index);
}

static int die(void *arg, uint32_t index, void *ret, struct td_err *err)
{
	(void)arg;
	(void)ret;
	(void)err;
	if (index == 3)
		raise(SIGKILL);
	return 0;
}

/* Does what Ctrl-C does to a process of the group. */
static int stop(void *arg, uint32_t index, void *ret, struct td_err *err)
{
	(void)arg;
	(void)err;
	*(uint32_t *)ret = index + 1;
	td_sim_stop = 1;
	return 0;
}

TEST(results_do_not_depend_on_the_number_of_processes)
{
	static struct result one[COUNT], many[COUNT];
	uint32_t rounds = 1000, others = 0;
	struct td_err err = {0};

	CHECK_EQ(td_workers_run(1, COUNT, add_up, &rounds, one, sizeof(one[0]), &err), 0);
	CHECK_EQ(td_workers_run(3, COUNT, add_up, &rounds, many, sizeof(many[0]), &err), 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		CHECK(one[i].sum > 0 && one[i].sum == many[i].sum);
		CHECK_EQ(one[i].pid, getpid());
		others += many[i].pid && many[i].pid != getpid();
	}
	CHECK_EQ(others, COUNT);
}

TEST(more_processes_than_tasks_do_no_harm)
{
	static struct result results[2];
	uint32_t rounds = 10;

	CHECK_EQ(td_workers_run(64, 2, add_up, &rounds, results, sizeof(results[0]), NULL), 0);
	CHECK(results[0].sum && results[1].sum);
	CHECK_EQ(td_workers_run(64, 0, add_up, &rounds, results, sizeof(results[0]), NULL), 0);
}

TEST(the_first_error_is_told)
{
	for (uint32_t workers = 1; workers < 4; workers += 2) {
		struct td_err err = {0};
		char results[COUNT] = {0};

		CHECK_EQ(td_workers_run(workers, COUNT, fail_from_seven, NULL, results, 1, &err),
			-EDOM);
		CHECK_STR(err.msg, "task 7");
	}
}

TEST(a_process_that_dies_is_an_error)
{
	struct td_err err = {0};
	char results[8];

	CHECK_EQ(td_workers_run(2, 8, die, NULL, results, 1, &err), -ECHILD);
}

TEST(a_stop_ends_it_between_tasks)
{
	struct td_err err = {0};
	uint32_t results[8] = {0};

	CHECK_EQ(td_workers_run(1, 8, stop, NULL, results, sizeof(results[0]), &err), -EINTR);
	CHECK_EQ(results[0], 0); /* what is not whole is not told */
	td_sim_stop = 0;
}
