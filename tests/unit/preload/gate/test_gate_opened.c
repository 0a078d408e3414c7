/* Files that a process has open, by their paths. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "preload/base/opened.h"
#include "test.h"

static const char *wanted;

static bool is_wanted(const char *path)
{
	return strstr(path, wanted);
}

static int open_file(char *path)
{
	strcpy(path, "/tmp/tandem-opened-XXXXXX");
	return mkstemp(path);
}

TEST(a_file_is_found_for_as_long_as_it_is_open)
{
	char path[64], found[64] = "";
	int fd = open_file(path);

	CHECK(fd >= 0);
	wanted = path;
	errno = 77;
	CHECK(td_opened_find(is_wanted, found, sizeof(found)));
	CHECK_EQ(errno, 77);
	CHECK_STR(found, path);
	CHECK(!close(fd));
	unlink(path);
	strcpy(found, "as before");
	CHECK(!td_opened_find(is_wanted, found, sizeof(found)));
	CHECK_STR(found, "as before");
}

TEST(a_file_that_is_deleted_has_its_path)
{
	char path[64], found[64] = "";
	int fd = open_file(path);

	CHECK(fd >= 0);
	unlink(path);
	wanted = path;
	CHECK(td_opened_find(is_wanted, found, sizeof(found)));
	CHECK(!strncmp(found, path, strlen(path)));
	CHECK(!close(fd));
}

TEST(a_long_path_is_cut)
{
	char path[64], found[8] = "";
	int fd = open_file(path);

	CHECK(fd >= 0);
	wanted = path;
	CHECK(td_opened_find(is_wanted, found, sizeof(found)));
	CHECK_STR(found, "/tmp/ta");
	CHECK(!close(fd));
	unlink(path);
}

/* More than one getdents64 returns. */
TEST(the_last_of_many_is_found)
{
	char path[64], found[64] = "";
	int fds[400], fd;

	for (unsigned i = 0; i < 400; i++)
		fds[i] = open("/dev/null", O_RDONLY);
	CHECK(fds[399] >= 0);
	fd = open_file(path);
	CHECK(fd > 400);
	wanted = path;
	CHECK(td_opened_find(is_wanted, found, sizeof(found)));
	CHECK_STR(found, path);
	for (unsigned i = 0; i < 400; i++)
		close(fds[i]);
	CHECK(!close(fd));
	unlink(path);
}

TEST(where_nothing_can_be_listed_the_answer_is_yes)
{
	struct rlimit was, none;
	char found[64] = "";
	bool yes;

	CHECK(!getrlimit(RLIMIT_NOFILE, &was));
	none = (struct rlimit){0, was.rlim_max};
	wanted = "nobody has this open";
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	errno = 77;
	yes = td_opened_find(is_wanted, found, sizeof(found));
	CHECK_EQ(errno, 77);
	CHECK(!setrlimit(RLIMIT_NOFILE, &was));
	CHECK(yes);
	CHECK_STR(found, "/proc/thread-self/fd");
}
