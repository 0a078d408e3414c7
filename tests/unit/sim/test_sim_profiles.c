/* Reading kinds of jobs: demands that the file gives, and those that follow from its numbers. */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "sim/data/profiles.h"

static struct td_profiles profiles;
static struct td_err err;

static int read_text(const char *text)
{
	char path[] = "/tmp/test_sim_profiles-XXXXXX";
	int fd = mkstemp(path), r;

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	err = (struct td_err){0};
	r = td_profiles_read(path, "t4", &profiles, &err);
	unlink(path);
	return r;
}

TEST(without_demands_they_follow_from_the_numbers)
{
	CHECK_EQ(read_text("gpu,job,sensitivity,pressure,host\nt4,a,1,0.6,0\nv100,b,0,0,0\n"), 0);
	CHECK_EQ(profiles.count, 1);
	CHECK_EQ(lround(profiles.profiles[0].contender.demand * 1000), 800);
	CHECK_EQ(lround(profiles.profiles[0].told_demand * 1000), 800);
}

TEST(a_demand_that_is_given_is_taken_and_schedulers_may_be_told_another)
{
	CHECK_EQ(read_text("gpu,job,sensitivity,pressure,host,demand,told_demand\n"
			   "t4,a,1,0.6,0,0.02,0.5\nt4,b,0,0,0,0.25,\nt4,c,0,0,0,,\n"),
		0);
	CHECK_EQ(profiles.count, 3);
	CHECK_EQ(lround(profiles.profiles[0].contender.demand * 1000), 20);
	CHECK_EQ(lround(profiles.profiles[0].told_demand * 1000), 500);
	CHECK_EQ(lround(profiles.profiles[1].told_demand * 1000), 250);
	CHECK_EQ(lround(profiles.profiles[2].contender.demand * 1000), 500);
}

TEST(a_demand_outside_of_a_gpu_is_refused_with_its_line)
{
	CHECK_EQ(read_text("gpu,job,sensitivity,pressure,host,demand\nt4,a,0,0,0,1.5\n"), -EINVAL);
	CHECK(strstr(err.msg, ":2: "));
	CHECK(strstr(err.msg, "1.5"));
	CHECK_EQ(read_text("gpu,job,sensitivity,pressure,host,told_demand\nt4,a,0,0,0,0\n"),
		-EINVAL);
	CHECK(strstr(err.msg, "told_demand"));
}

TEST(each_column_goes_where_it_belongs)
{
	CHECK_EQ(read_text("host,pressure,sensitivity,job,gpu\n0.5,2,3,a,t4\n"), 0);
	CHECK_STR(profiles.profiles[0].name, "a");
	CHECK_EQ(lround(profiles.profiles[0].contender.sensitivity * 10), 30);
	CHECK_EQ(lround(profiles.profiles[0].contender.pressure * 10), 20);
	CHECK_EQ(lround(profiles.profiles[0].contender.host * 10), 5);
}

TEST(a_row_that_is_refused_is_not_made_good_by_the_next_one)
{
	CHECK_EQ(read_text("gpu,job,sensitivity,pressure,host\nt4,a,1,x,0\nt4,b,1,1,0\n"), -EINVAL);
	CHECK(strstr(err.msg, ":2: "));
	/* Rows of other GPUs are not looked at. */
	CHECK_EQ(read_text("gpu,job,sensitivity,pressure,host\nv100,a,1,x,0\nt4,b,1,1,0\n"), 0);
	CHECK_STR(profiles.profiles[0].name, "b");
	CHECK_EQ(read_text("gpu,job,sensitivity,pressure,host\nv100,a,1,1,0\n"), -ENOENT);
}

TEST(as_many_jobs_are_read_as_there_is_room_for)
{
	static char text[TD_PROFILES_MAX * 32];
	int n = snprintf(text, sizeof(text), "gpu,job,sensitivity,pressure,host\n");

	for (uint32_t i = 0; i < TD_PROFILES_MAX; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "t4,j%u,0,0,0\n", i);
	CHECK_EQ(read_text(text), 0);
	CHECK_EQ(profiles.count, TD_PROFILES_MAX);
	CHECK_STR(profiles.profiles[TD_PROFILES_MAX - 1].name, "j255");
	snprintf(text + n, sizeof(text) - (size_t)n, "t4,more,0,0,0\n");
	CHECK_EQ(read_text(text), -EINVAL);
	CHECK(strstr(err.msg, "more than 256 jobs"));
}
