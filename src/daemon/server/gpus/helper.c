/* This file implements helper.h. */
#include "daemon/server/gpus/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/execute/parking.h"
#include "daemon/model/node.h"
#include "daemon/model/sharing/pool.h"
#include "daemon/server/loop/spawn.h"

#define NUMBERS 5

static void ended(struct td_source *source, uint32_t events)
{
	(void)source;
	(void)events; /* td_helpers_turn(), which follows, waits for the process */
}

void td_helpers_init(struct td_helpers *helpers, struct td_loop *loop, struct td_node *node)
{
	helpers->loop = loop;
	helpers->node = node;
	for (size_t i = 0; i < TD_HELPERS_MAX; i++)
		helpers->all[i].source = (struct td_source){-1, ended, false};
}

static void forget(struct td_helpers *helpers, struct td_helper *helper)
{
	td_loop_remove(helpers->loop, &helper->source);
	close(helper->source.fd);
	close(helper->steps);
	helper->source.fd = -1;
}

/* Returns what the helper had begun last. */
static enum td_checkpoint_step last_step(const struct td_helper *helper)
{
	char bytes[8];
	ssize_t n = read(helper->steps, bytes, sizeof(bytes));

	return n > 0 ? (enum td_checkpoint_step)bytes[n - 1] : TD_CHECKPOINT_BEFORE;
}

void td_helpers_deinit(struct td_helpers *helpers)
{
	for (size_t i = 0; i < TD_HELPERS_MAX; i++)
		if (helpers->all[i].source.fd >= 0)
			forget(helpers, &helpers->all[i]);
}

static int run(const struct td_checkpoint_order *order, struct td_helper *ret)
{
	char numbers[NUMBERS][24], hex[TD_CHECKPOINT_PAIRS_MAX][2][TD_CHECKPOINT_HEX];
	char *argv[2 + NUMBERS + 2 * TD_CHECKPOINT_PAIRS_MAX + 1] = {
		(char *)"tandemd", (char *)TD_CHECKPOINT_ARGUMENT};
	uint32_t n = 2;
	int steps[2], r;

	snprintf(numbers[0], sizeof(numbers[0]), "%u", (unsigned)order->what);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", (int)order->pid);
	snprintf(numbers[2], sizeof(numbers[2]), "%u", (unsigned)order->who.uid);
	snprintf(numbers[3], sizeof(numbers[3]), "%" PRIu32, order->timeout_ms);
	snprintf(numbers[4], sizeof(numbers[4]), "%d", (int)getpid());
	for (uint32_t i = 0; i < NUMBERS; i++)
		argv[n++] = numbers[i];
	for (uint32_t i = 0; i < order->pair_count; i++)
		for (uint32_t k = 0; k < 2; k++)
			argv[n++] = td_checkpoint_hex(hex[i][k], order->pairs[i][k]);
	argv[n] = NULL;
	if (pipe2(steps, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	r = td_spawn("/proc/self/exe", argv, steps[1], TD_CHECKPOINT_FD, &ret->pid);
	close(steps[1]);
	ret->steps = steps[0];
	if (r)
		close(steps[0]);
	return r;
}

bool td_helpers_allow(const struct td_helpers *helpers, struct td_identity who)
{
	static const struct td_pool pool = {.total = TD_HELPERS_MAX};
	uint32_t used = 0, has = 0;

	for (size_t i = 0; i < TD_HELPERS_MAX; i++) {
		bool works = helpers->all[i].source.fd >= 0;

		used += works;
		has += works && td_identity_is_counted_as(helpers->all[i].who, who);
	}
	return td_pool_allows(&pool, used, has, td_node_is_owner(helpers->node, who));
}

int td_helpers_start(struct td_helpers *helpers, const struct td_checkpoint_order *order)
{
	struct td_helper *helper = NULL;
	int r;

	for (size_t i = 0; i < TD_HELPERS_MAX && !helper; i++)
		if (helpers->all[i].source.fd < 0)
			helper = &helpers->all[i];
	if (!helper || !td_helpers_allow(helpers, order->who))
		return -EAGAIN;
	r = run(order, helper);
	if (r)
		return r;
	helper->number = order->number;
	helper->who = order->who;
	helper->source.fd = (int)syscall(SYS_pidfd_open, helper->pid, 0);
	r = helper->source.fd < 0 ? -errno : td_loop_add(helpers->loop, &helper->source);
	if (!r)
		return 0;
	/* Nothing would report the helper's end, so it is killed; it has hardly begun. */
	kill(helper->pid, SIGKILL);
	(void)waitpid(helper->pid, NULL, 0);
	if (helper->source.fd >= 0)
		close(helper->source.fd);
	close(helper->steps);
	helper->source.fd = -1;
	return r;
}

void td_helpers_turn(struct td_helpers *helpers, uint64_t now_ns)
{
	for (size_t i = 0; i < TD_HELPERS_MAX; i++) {
		struct td_helper *helper = &helpers->all[i];
		enum td_checkpoint_step step;
		int status;

		if (helper->source.fd < 0 || waitpid(helper->pid, &status, WNOHANG) != helper->pid)
			continue;
		step = last_step(helper);
		forget(helpers, helper);
		td_parking_ended(helpers->node, helper->number,
			WIFEXITED(status) && WEXITSTATUS(status) < TD_CHECKPOINT_END_N
				? (enum td_checkpoint_end)WEXITSTATUS(status)
				: TD_CHECKPOINT_END_N,
			step == TD_CHECKPOINT_THERE, now_ns);
	}
}
