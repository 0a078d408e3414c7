/* What is removed from the directory in which programs meet, and what is not. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "daemon/sweep.h"
#include "test.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static char root[32], path[64];
static struct td_sweep sweep;

static void begin(void)
{
	strcpy(root, "/tmp/tandem-sweep-XXXXXX");
	CHECK(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/s", root);
	CHECK_EQ(td_sweep_init(&sweep, path), 0);
}

static const char *in_dir(const char *name)
{
	static char full[256];

	snprintf(full, sizeof(full), "%s/%s", sweep.dir, name);
	return full;
}

static void make_old(const char *name)
{
	const struct timespec times[2] = {{time(NULL) - 60, 0}, {time(NULL) - 60, 0}};

	CHECK_EQ(utimensat(AT_FDCWD, in_dir(name), times, AT_SYMLINK_NOFOLLOW), 0);
}

/* Listens there; -1: did so. */
static int somebody(const char *name, bool stays)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK_EQ(td_shared_bind(fd, sweep.dir, name), 0);
	CHECK_EQ(listen(fd, 1), 0);
	if (stays)
		return fd;
	close(fd);
	return -1;
}

static void end(void)
{
	td_sweep_deinit(&sweep);
	CHECK_EQ(rmdir(root), 0);
}

TEST(a_dead_programs_socket_goes_and_a_living_ones_stays)
{
	int living;

	begin();
	living = somebody(A, true);
	(void)somebody(B, false);
	make_old(A), make_old(B);
	CHECK_EQ(td_sweep_turn(&sweep, 1000), UINT64_MAX);
	CHECK(td_shared_is_there(sweep.dir, A));
	CHECK(!td_shared_is_there(sweep.dir, B));
	close(living);
	/* Nobody has said that anything may be there. */
	CHECK_EQ(td_sweep_turn(&sweep, 2000), UINT64_MAX);
	CHECK(td_shared_is_there(sweep.dir, A));
	td_sweep_soon(&sweep, 3000);
	CHECK_EQ(td_sweep_turn(&sweep, 3000), UINT64_MAX);
	CHECK(!td_shared_is_there(sweep.dir, A));
	end();
}

TEST(one_that_was_just_made_is_looked_at_later)
{
	uint64_t later_ns;

	begin();
	(void)somebody(A, false);
	later_ns = td_sweep_turn(&sweep, 1000);
	CHECK(later_ns > 1000 && later_ns < 60 * TD_NS_PER_S);
	CHECK(td_shared_is_there(sweep.dir, A));
	make_old(A);
	CHECK_EQ(td_sweep_turn(&sweep, later_ns - 1), later_ns);
	CHECK_EQ(td_sweep_turn(&sweep, later_ns), UINT64_MAX);
	CHECK(!td_shared_is_there(sweep.dir, A));
	end();
}

TEST(what_is_no_socket_or_not_named_like_one_of_ours_is_left_alone)
{
	char target[160];
	int fd;

	begin();
	(void)somebody("short", false);
	make_old("short");
	fd = open(in_dir(A), O_CREAT | O_WRONLY, 0600);
	CHECK(fd >= 0);
	close(fd);
	make_old(A);
	snprintf(target, sizeof(target), "%s/short", sweep.dir);
	CHECK_EQ(symlink(target, in_dir(B)), 0);
	make_old(B);
	CHECK_EQ(td_sweep_turn(&sweep, 1000), UINT64_MAX);
	CHECK(td_shared_is_there(sweep.dir, "short"));
	CHECK_EQ(access(in_dir(A), F_OK), 0);
	CHECK_EQ(unlink(in_dir(B)), 0);
	CHECK_EQ(unlink(in_dir(A)), 0);
	CHECK_EQ(unlink(in_dir("short")), 0);
	end();
}

TEST(a_directory_that_is_there_is_taken_over_if_it_is_ours)
{
	struct stat st;

	begin();
	CHECK_EQ(stat(sweep.dir, &st), 0);
	CHECK_EQ(st.st_mode & 07777, geteuid() ? 0700 : 01733);
	CHECK_EQ(chmod(sweep.dir, 0755), 0);
	CHECK_EQ(td_sweep_init(&sweep, path), 0);
	CHECK_EQ(stat(sweep.dir, &st), 0);
	CHECK_EQ(st.st_mode & 07777, geteuid() ? 0700 : 01733);
	CHECK_EQ(rmdir(sweep.dir), 0);
	CHECK_EQ(symlink("/tmp", sweep.dir), 0);
	CHECK(td_sweep_init(&sweep, path) < 0);
	CHECK_STR(sweep.dir, "");
	CHECK_EQ(td_sweep_turn(&sweep, 1000), UINT64_MAX);
	td_sweep_soon(&sweep, 1000);
	CHECK_EQ(td_sweep_turn(&sweep, 1000), UINT64_MAX);
	snprintf(sweep.dir, sizeof(sweep.dir), "%s.ipc", path);
	CHECK_EQ(unlink(sweep.dir), 0);
	sweep.dir[0] = 0;
	end();
}
