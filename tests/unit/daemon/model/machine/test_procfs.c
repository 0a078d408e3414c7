/* Figures of processes from /proc, with names that others have chosen, and malformed text. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/model/machine/procfs.h"
#include "test.h"

#define REST " 1 2 3 4 -1 5 6 7 8 9 30 12 0 0 20 0 1 0 12345 4096 10 18446744073709551615\n"

static bool parses(const char *text, struct td_procfs_stat *ret)
{
	*ret = (struct td_procfs_stat){0};
	return td_procfs_parse_stat(text, ret);
}

TEST(a_stat_is_read_behind_the_name)
{
	static const char *const names[] = {
		"(cat)", "(a b)", "(a) T 1 2)", "()", "(((", "())))", "(\n)", "(x) R 1 (y)"};
	struct td_procfs_stat stat;
	char text[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text), "42 %s%s t" REST, names[i],
			names[i][strlen(names[i]) - 1] == ')' ? "" : ")");
		CHECK(parses(text, &stat));
		CHECK_EQ(stat.state, 't');
		CHECK_EQ(stat.cpu_ticks, 42);
		CHECK_EQ(stat.start_ticks, 12345);
	}
}

TEST(what_is_no_stat_is_not_read)
{
	static const char *const texts[] = {"", ")", ") ", ") T", ") T ", "1 (a) T",
		"1 (a) T 1 2 3", "1 (a) 7" REST, "1 (a)T" REST, "1 (a T" REST, "1 (a)  T" REST,
		"1 (a) T 1 2 3 4 -1 5 6 7 8 9 x 12 0 0 20 0 1 0 12345",
		"1 (a) T 1 2 3 4 -1 5 6 7 8 9 99999999999999999999999 12 0 0 20 0 1 0 12345",
		"1 (a) T 1 2 3 4 -1 5 6 7 8 9 30 12 0 0 20 0 1 0 -"};
	struct td_procfs_stat stat;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK(!parses(texts[i], &stat));
}

static const char *group(const char *text, const char *controller)
{
	static char path[32];

	return td_procfs_parse_cgroup(text, controller, path, sizeof(path)) ? path : "none";
}

TEST(control_groups_are_found)
{
	CHECK_STR(group("0::/a/b\n", ""), "/a/b");
	CHECK_STR(group("0::/", ""), "");
	CHECK_STR(group("5:cpu,freezer:/x\n0::/y\n", "freezer"), "/x");
	CHECK_STR(group("5:cpu,freezer:/x\n0::/y\n", ""), "/y");
	CHECK_STR(group("5:cpu,freezers:/x\n0::/y:z\n", "freezer"), "none");
	CHECK_STR(group("5:cpu,freezers:/x\n0::/y:z", ""), "/y:z");
	CHECK_STR(group("1:name=systemd:/s\n", ""), "none");
	CHECK_STR(group("0::/../other\n", ""), "none");
	CHECK_STR(group("0::/..", ""), "none");
	CHECK_STR(group("0::/..a/b..", ""), "/..a/b..");
	CHECK_STR(group("0::/0123456789012345678901234567890123456789\n", ""), "none");
	CHECK_STR(group("0::relative\n", ""), "none");
	CHECK_STR(group("", ""), "none");
	CHECK_STR(group(":\n::\n0:\n", "freezer"), "none");
}

TEST(frozen_is_what_says_so)
{
	CHECK(td_procfs_parse_events("populated 1\nfrozen 1\n"));
	CHECK(td_procfs_parse_events("frozen 1"));
	CHECK(!td_procfs_parse_events("populated 1\nfrozen 0\n"));
	CHECK(!td_procfs_parse_events("unfrozen 1\n"));
	CHECK(!td_procfs_parse_events("frozen 10\n"));
	CHECK(!td_procfs_parse_events(""));
	CHECK(td_procfs_parse_freezer("FROZEN\n"));
	CHECK(!td_procfs_parse_freezer("FREEZING\n"));
	CHECK(!td_procfs_parse_freezer("THAWED\n"));
}

TEST(a_process_is_seen_to_run_to_stop_and_to_end)
{
	struct td_procfs_stat stat, own;
	struct pollfd end;
	int pair[2], status;
	pid_t child;

	CHECK_EQ(td_procfs_stat(getpid(), &own), 0);
	CHECK_EQ(own.state, 'R');
	CHECK_EQ(td_procfs_stop(getpid(), &own), TD_STOP_NONE);
	CHECK(td_procfs_stat(0, &stat) < 0);
	CHECK(td_procfs_stat(-1, &stat) < 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	child = fork();
	if (!child)
		for (;;)
			pause();
	CHECK_EQ(kill(child, SIGSTOP), 0);
	CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
	CHECK_EQ(td_procfs_stat(child, &stat), 0);
	CHECK_EQ(td_procfs_stop(child, &stat), TD_STOP_SIGNAL);
	CHECK(stat.start_ticks >= own.start_ticks);
	/*
	 * The socket's other end is this process. A kernel that cannot tell that falls back to the
	 * PID.
	 */
	end.fd = td_procfs_pidfd(pair[0], getpid());
	end.events = POLLIN;
	if (end.fd >= 0) {
		CHECK_EQ(poll(&end, 1, 0), 0);
		close(end.fd);
	}
	CHECK_EQ(kill(child, SIGKILL), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(td_procfs_stat(child, &stat) < 0);
	close(pair[0]);
	close(pair[1]);
}

TEST(a_look_leaves_no_descriptor_open)
{
	struct td_procfs_stat stat;
	uid_t uid;
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC), after;

	close(before);
	CHECK_EQ(td_procfs_stat(getpid(), &stat), 0);
	(void)td_procfs_stop(getpid(), &stat);
	CHECK_EQ(td_procfs_uid(getpid(), &uid), 0);
	CHECK_EQ(td_procfs_start_ticks(getpid(), getuid()), stat.start_ticks);
	after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(after);
	CHECK_EQ(after, before);
}

TEST(a_number_stands_for_its_user_alone)
{
	struct td_procfs_stat own;
	pid_t child = fork();
	int status;

	if (!child)
		_exit(0);
	CHECK_EQ(td_procfs_stat(getpid(), &own), 0);
	CHECK_EQ(td_procfs_start_ticks(getpid(), getuid()), own.start_ticks);
	CHECK_EQ(td_procfs_start_ticks(getpid(), getuid() + 12345), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(td_procfs_start_ticks(child, getuid()), 0);
}
