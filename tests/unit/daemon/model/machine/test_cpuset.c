/* The control groups of besteffort jobs, in a made-up tree. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/model/machine/cpuset.h"

#define SELF 4711

static char root[64];
static struct td_cpuset cpuset;
static char why[224];

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "w");

	CHECK(file != NULL);
	fputs(text, file);
	fclose(file);
}

static const char *text_of(const char *name)
{
	static char text[256];
	FILE *file = fopen(path_of(name), "r");
	size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (file)
		fclose(file);
	text[n] = 0;
	return text;
}

/* A kernel makes the files with a group. */
static void make_group(const char *name)
{
	char file[128];

	CHECK(!mkdir(path_of(name), 0755));
	snprintf(file, sizeof(file), "%s/cgroup.procs", name);
	put(file, "");
	snprintf(file, sizeof(file), "%s/cpuset.cpus", name);
	put(file, "");
}

static void start(void)
{
	strcpy(root, "/tmp/cpuset-XXXXXX");
	CHECK(mkdtemp(root) != NULL);
	memset(&cpuset, 0, sizeof(cpuset));
	CHECK(!mkdir(path_of("service"), 0755));
	put("service/cgroup.controllers", "cpu cpuset io\n");
	put("service/cgroup.subtree_control", "");
	put("service/cgroup.procs", "");
	make_group("service/tandemd");
	make_group("service/besteffort");
	make_group("service/jobs");
	make_group("session");
}

static void end(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -r %s", root);
	CHECK(!system(command));
}

static int set(const char *group, const char *cpus)
{
	return td_cpuset_set(&cpuset, root, group, cpus, SELF);
}

TEST(lists_of_cpus_are_read_as_the_kernel_does)
{
	static const char *const good[] = {"0", "0-3", "3-3", "0-3,8", "8,0-3,10-11", "65535"},
				 *const bad[] = {"", ",", "0,", "-1", "3-1", "0-", "a", "0 1",
					 "65536", "0-3,", "0--3", "99999999999"};
	char lengthy[TD_CPUSET_CPUS + 1];

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		CHECK(td_cpuset_parse(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(!td_cpuset_parse(bad[i]));
	memset(lengthy, '1', sizeof(lengthy) - 1);
	for (size_t i = 1; i < sizeof(lengthy) - 1; i += 2)
		lengthy[i] = ',';
	lengthy[sizeof(lengthy) - 2] = '1';
	lengthy[sizeof(lengthy) - 1] = 0;
	CHECK(!td_cpuset_parse(lengthy));
}

TEST(the_daemon_makes_room_below_its_group_and_moves_into_it)
{
	start();
	CHECK_EQ(set("/service", "2-3"), 0);
	CHECK_STR(text_of("service/tandemd/cgroup.procs"), "4711\n");
	CHECK_STR(text_of("service/cgroup.subtree_control"), "+cpuset");
	CHECK_STR(text_of("service/besteffort/cpuset.cpus"), "2-3\n");
	CHECK_STR(cpuset.why, "");
	CHECK_EQ(td_cpuset_join(&cpuset, 99), 0);
	CHECK_STR(text_of("service/besteffort/cgroup.procs"), "99\n");
	/* Back to where it was, or where that is not known. */
	CHECK_EQ(td_cpuset_leave(&cpuset, root, "/session", 99), 0);
	CHECK_STR(text_of("session/cgroup.procs"), "99\n");
	CHECK_EQ(td_cpuset_leave(&cpuset, root, "/gone", 98), 0);
	CHECK_STR(text_of("service/jobs/cgroup.procs"), "98\n");
	end();
}

TEST(another_list_and_none_change_no_more_than_the_cpus)
{
	start();
	CHECK_EQ(set("/service", "2-3"), 0);
	put("service/tandemd/cgroup.procs", "");
	CHECK_EQ(set("/service/tandemd", "1"), 0);
	/* A kernel's file does not keep what was behind it. */
	CHECK(!strncmp(text_of("service/besteffort/cpuset.cpus"), "1\n", 2));
	CHECK_EQ(set("/service/tandemd", ""), 0);
	CHECK_STR(text_of("service/tandemd/cgroup.procs"), "");
	end();
}

TEST(what_lives_on_gets_all_cpus_from_a_daemon_that_gives_it_none)
{
	start();
	put("service/besteffort/cpuset.cpus", "2-3\n");
	CHECK_EQ(set("/service", ""), 0);
	CHECK_STR(text_of("service/besteffort/cpuset.cpus"), "2-3\n");
	CHECK_EQ(set("/service/tandemd", ""), 0);
	CHECK(text_of("service/besteffort/cpuset.cpus")[0] == '\n');
	CHECK_STR(cpuset.own, "");
	CHECK_STR(text_of("service/tandemd/cgroup.procs"), "");
	end();
}

TEST(a_list_that_the_kernel_refuses_leaves_the_one_in_force_and_says_so)
{
	start();
	CHECK_EQ(set("/service", "2-3"), 0);
	CHECK(!unlink(path_of("service/besteffort/cpuset.cpus")));
	CHECK(set("/service/tandemd", "900") < 0);
	CHECK(strstr(cpuset.why, "/service/besteffort cannot be changed: "));
	CHECK(strstr(cpuset.why, "besteffort jobs keep those that they had"));
	CHECK(!strstr(cpuset.why, "all CPUs"));
	end();
}

TEST(a_daemon_that_is_started_again_in_its_own_part_finds_the_rest)
{
	start();
	CHECK_EQ(set("/service/tandemd", "0"), 0);
	CHECK_STR(text_of("service/besteffort/cpuset.cpus"), "0\n");
	end();
}

TEST(without_the_controller_a_sentence_says_so)
{
	start();
	put("service/cgroup.controllers", "cpu io\n");
	CHECK_EQ(set("/service", "0"), -ENODEV);
	CHECK(strstr(cpuset.why, "/service: it has no cpuset controller; besteffort jobs run on"));
	CHECK_STR(cpuset.own, "");
	CHECK_STR(text_of("service/tandemd/cgroup.procs"), "");
	CHECK_EQ(set("/elsewhere", "0"), -ENOENT);
	CHECK(strstr(cpuset.why, "no group of the unified hierarchy"));
	CHECK_EQ(set("/elsewhere", ""), 0);
	CHECK_STR(cpuset.why, "");
	end();
}

TEST(groups_of_others_are_known_by_their_names)
{
	CHECK(td_cpuset_is_foreign("/system.slice/slurmstepd.scope/job_7/step_0/user/task_0"));
	CHECK(td_cpuset_is_foreign("/kubepods.slice/kubepods-pod1.slice/cri-containerd-2.scope"));
	CHECK(td_cpuset_is_foreign("/system.slice/docker-0123.scope"));
	CHECK(td_cpuset_is_foreign("/machine.slice/libpod-0123.scope"));
	CHECK(td_cpuset_is_foreign("/lxc.payload.web/init.scope"));
	CHECK(td_cpuset_is_foreign("/docker/0123"));
	CHECK(td_cpuset_is_foreign("/slurm_host1/uid_7"));
	CHECK(!td_cpuset_is_foreign("/user.slice/user-1000.slice/session-2.scope"));
	CHECK(!td_cpuset_is_foreign(""));
	/* The words as parts of other names. */
	CHECK(!td_cpuset_is_foreign("/user.slice/my-docker.service"));
	CHECK(!td_cpuset_is_foreign("/user.slice/flxc/machine.slices"));
	CHECK(!td_cpuset_is_foreign("/user.slice/machine-learning.service"));
	CHECK(!td_cpuset_is_foreign("/user.slice/slurmy"));
}

static bool escapes(const char *group)
{
	why[0] = 0;
	return td_cpuset_escapes(&cpuset, root, group, why, sizeof(why));
}

TEST(a_process_that_would_escape_a_limit_is_known)
{
	start();
	make_group("session/app");
	CHECK_EQ(set("/service", "0"), 0);
	CHECK(!escapes("/session/app"));
	put("session/memory.max", "max\n");
	put("session/cpu.max", "max 100000\n");
	put("session/app/pids.max", "max\n");
	CHECK(!escapes("/session/app"));
	put("session/cpu.max", "50000 100000\n");
	CHECK(escapes("/session/app"));
	CHECK_STR(why, "its control group /session has cpu.max=50000 100000");
	put("session/app/memory.high", "1048576\n");
	CHECK(escapes("/session/app"));
	CHECK_STR(why, "its control group /session/app has memory.high=1048576");
	CHECK(escapes("/session") && !escapes("/") && !escapes("") && !escapes("/sess"));
	end();
}

TEST(limits_that_it_keeps_do_not_count)
{
	start();
	make_group("service/app");
	put("service/memory.max", "1048576\n"); /* it holds below the group, too */
	put("service/tandemd/pids.max", "7\n");
	CHECK_EQ(set("/service", "0"), 0);
	CHECK(!escapes("/service") && !escapes("/service/app") && !escapes("/service/besteffort"));
	put("service/app/pids.max", "7\n");
	CHECK(escapes("/service/app"));
	/* The name alone does not make a group one of those above. */
	make_group("serv");
	put("serv/pids.max", "7\n");
	CHECK(escapes("/serv"));
	end();
}

TEST(what_cannot_be_seen_counts_as_a_limit)
{
	start();
	CHECK_EQ(set("/service", "0"), 0);
	CHECK(escapes("/../other"));
	CHECK_STR(why, "its control group /../other cannot be seen from here");
	CHECK(!mkdir(path_of("session/pids.max"), 0755)); /* cannot be read */
	CHECK(escapes("/session"));
	CHECK_STR(why, "pids.max of its control group /session cannot be read: Is a directory");
	end();
}
