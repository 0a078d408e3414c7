/* The agent's bell: it wakes who polls it, and its descriptors go with it. */
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

#include "preload/link/conn.h"

static unsigned count_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static bool is_rung(const struct td_bell *bell)
{
	struct pollfd fd = {.fd = atomic_load(&bell->out.fd), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

TEST(a_bell_that_was_rung_often_is_quiet_after_one_look)
{
	unsigned before = count_descriptors();
	struct td_bell bell;

	CHECK_EQ(td_bell_init(&bell), 0);
	CHECK(!is_rung(&bell));
	for (unsigned i = 0; i < 10; i++)
		td_bell_ring(&bell);
	CHECK(is_rung(&bell));
	td_bell_quiet(&bell);
	CHECK(!is_rung(&bell));
	td_bell_deinit(&bell);
	CHECK_EQ(count_descriptors(), before);
}

/* A program may close descriptors that are not its own, and open others with their numbers. */
TEST(a_descriptor_that_the_program_has_taken_over_is_left_alone)
{
	struct td_bell bell;
	int out, own;

	CHECK_EQ(td_bell_init(&bell), 0);
	out = atomic_load(&bell.out.fd);
	own = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK(own >= 0);
	CHECK_EQ(dup2(own, out), out);
	td_bell_deinit(&bell);
	CHECK(fcntl(out, F_GETFD) >= 0);
	CHECK_EQ(close(out), 0);
	CHECK_EQ(close(own), 0);
}
