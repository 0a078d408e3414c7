/*
 * The sweep of the directory in which programs meet: which entries it removes, and which it leaves.
 */
#include <dirent.h>
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
#include "daemon/server/loop/sweep.h"
#include "test.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

#define LATER (2 * TD_NS_PER_S)

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

static bool is_there(const char *name)
{
	struct stat st;

	return !lstat(in_dir(name), &st);
}

/* The number as a name. */
static const char *nth(unsigned i)
{
	static char name[33];

	snprintf(name, sizeof(name), "%032x", i);
	return name;
}

static unsigned names_left(void)
{
	DIR *dir = opendir(sweep.dir);
	const struct dirent *entry;
	unsigned n = 0;

	CHECK(dir);
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
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
	CHECK(is_there(A));
	CHECK(!is_there(B));
	close(living);
	/* Nobody has said that anything may be there. */
	CHECK_EQ(td_sweep_turn(&sweep, 2000), UINT64_MAX);
	CHECK(is_there(A));
	td_sweep_soon(&sweep, LATER);
	CHECK_EQ(td_sweep_turn(&sweep, LATER), UINT64_MAX);
	CHECK(!is_there(A));
	end();
}

TEST(one_that_was_just_made_is_looked_at_later)
{
	uint64_t later_ns;

	begin();
	(void)somebody(A, false);
	later_ns = td_sweep_turn(&sweep, 1000);
	CHECK(later_ns > 1000 && later_ns < 60 * TD_NS_PER_S);
	CHECK(is_there(A));
	make_old(A);
	CHECK_EQ(td_sweep_turn(&sweep, later_ns - 1), later_ns);
	CHECK_EQ(td_sweep_turn(&sweep, later_ns), UINT64_MAX);
	CHECK(!is_there(A));
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
	CHECK(is_there("short"));
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

TEST(few_are_looked_at_in_a_turn_and_all_of_them_in_the_end)
{
	uint64_t now = 1000, next;
	unsigned left = 200, turns = 0;

	begin();
	for (unsigned i = 0; i < left; i++) {
		(void)somebody(nth(i), false);
		make_old(nth(i));
	}
	while ((next = td_sweep_turn(&sweep, now)) != UINT64_MAX) {
		CHECK(names_left() + 64 >= left);
		left = names_left();
		CHECK(next > now && next < now + 100 * TD_NS_PER_MS);
		CHECK_EQ(td_sweep_turn(&sweep, next - 1), next); /* others have their time */
		CHECK_EQ(names_left(), left);
		now = next;
		CHECK(++turns < 10);
	}
	CHECK(turns >= 3);
	CHECK_EQ(names_left(), 0);
	end();
}

TEST(at_most_one_begins_in_a_second)
{
	begin();
	CHECK_EQ(td_sweep_turn(&sweep, 1000), UINT64_MAX);
	(void)somebody(A, false);
	make_old(A);
	for (uint64_t now = 2000; now < 1000 + TD_NS_PER_S; now += 100 * TD_NS_PER_MS) {
		td_sweep_soon(&sweep, now);
		CHECK_EQ(td_sweep_turn(&sweep, now), 1000 + TD_NS_PER_S);
		CHECK(is_there(A));
	}
	CHECK_EQ(td_sweep_turn(&sweep, 1000 + TD_NS_PER_S), UINT64_MAX);
	CHECK(!is_there(A));
	end();
}

TEST(junk_hides_nothing_however_much_of_it_there_is)
{
	uint64_t now = 1000, next;

	begin();
	for (unsigned i = 0; i < 20; i++) {
		(void)somebody(nth(i), false);
		make_old(nth(i));
	}
	for (unsigned i = 100; i < 5100; i++)
		CHECK_EQ(symlink("nowhere", in_dir(nth(i))), 0);
	while ((next = td_sweep_turn(&sweep, now)) != UINT64_MAX)
		now = next;
	for (unsigned i = 0; i < 20; i++)
		CHECK(!is_there(nth(i)));
	for (unsigned i = 100; i < 5100; i++)
		CHECK_EQ(unlink(in_dir(nth(i))), 0);
	end();
}

TEST(further_names_of_a_living_socket_go)
{
	char first[256];
	int living;

	begin();
	living = somebody(A, true);
	make_old(A);
	snprintf(first, sizeof(first), "%s", in_dir(A));
	for (unsigned i = 0; i < 50; i++)
		CHECK_EQ(link(first, in_dir(nth(i))), 0);
	CHECK_EQ(td_sweep_turn(&sweep, 1000), UINT64_MAX);
	CHECK_EQ(names_left(), 1);
	close(living);
	for (unsigned i = 0; i < 50; i++)
		(void)unlink(in_dir(nth(i)));
	(void)unlink(in_dir(A));
	end();
}

TEST(a_directory_that_was_lost_is_made_again_when_it_is_asked_for)
{
	struct stat st;

	begin();
	CHECK_EQ(td_sweep_turn(&sweep, 1000), UINT64_MAX);
	CHECK_EQ(rmdir(sweep.dir), 0);
	CHECK_EQ(td_sweep_turn(&sweep, LATER), UINT64_MAX);
	CHECK(stat(sweep.dir, &st) < 0);
	td_sweep_soon(&sweep, LATER);
	CHECK_EQ(td_sweep_turn(&sweep, LATER), UINT64_MAX);
	CHECK_EQ(stat(sweep.dir, &st), 0);
	CHECK_EQ(st.st_mode & 07777, geteuid() ? 0700 : 01733);
	/* Where it cannot be made, nothing happens. */
	CHECK_EQ(rmdir(sweep.dir), 0);
	CHECK_EQ(symlink("/tmp", sweep.dir), 0);
	td_sweep_soon(&sweep, 2 * LATER);
	CHECK_EQ(td_sweep_turn(&sweep, 2 * LATER), UINT64_MAX);
	CHECK_EQ(unlink(sweep.dir), 0);
	end();
}
