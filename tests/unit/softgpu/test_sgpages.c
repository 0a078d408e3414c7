/*
 * The software GPU's pages: giving them back does not wait, running work can still read them, and a
 * child of fork is not served by its parent's thread.
 */
#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "softgpu/driver/driver.h"

#define MIB         ((uint64_t)1 << 20)
#define DEADLINE_NS (20 * TD_NS_PER_S)

/*
 * Tells whether the pages can be read and hold `mark`. Something else may have taken their
 * addresses, such as an arena of malloc.
 */
static bool is_there(const char *pages, char mark)
{
	char held = (char)~mark;
	int ends[2];
	bool there;

	if (pipe(ends))
		return true;
	there = write(ends[1], pages, 1) == 1 && read(ends[0], &held, 1) == 1 && held == mark;
	close(ends[0]);
	close(ends[1]);
	return there;
}

static bool goes(const char *pages, char mark)
{
	uint64_t end = td_time_now_ns() + DEADLINE_NS;

	while (is_there(pages, mark)) {
		if (td_time_now_ns() > end)
			return false;
		td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS);
	}
	return true;
}

TEST(pages_that_were_given_back_go)
{
	for (int i = 0; i < 3; i++) {
		char *large = sg_pages_new(64 * MIB), *small = sg_pages_new(MIB / 2);

		CHECK(large && small);
		memset(large, 1, 64 * MIB);
		memset(small, 1, MIB / 2);
		sg_pages_free(large, 64 * MIB);
		sg_pages_free(small, MIB / 2);
		CHECK(!is_there(small, 1));
		CHECK(goes(large, 1));
	}
}

TEST(what_runs_can_read_them_until_it_ends)
{
	char *pages = sg_pages_new(4 * MIB);

	sg_pages_enter();
	sg_pages_free(pages, 4 * MIB);
	CHECK(is_there(pages, 0));
	CHECK_EQ(pages[3 * MIB], 0);
	pages[0] = 2;
	sg_pages_leave();
	CHECK(goes(pages, 2));
}

TEST(in_a_child_of_fork_they_go_at_once)
{
	char *pages = sg_pages_new(4 * MIB);
	int status = -1;
	pid_t child;

	sg_pages_free(sg_pages_new(4 * MIB), 4 * MIB); /* the thread is there */
	pages[0] = 3;
	child = fork();
	if (!child) {
		sg_pages_free(pages, 4 * MIB);
		_exit(is_there(pages, 3));
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	CHECK(is_there(pages, 3));
	sg_pages_free(pages, 4 * MIB);
	CHECK(goes(pages, 3));
}
