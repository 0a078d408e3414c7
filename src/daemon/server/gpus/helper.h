/*
 * The helpers that make the driver's blocking calls for checkpoints (gpu/checkpoint.h): the daemon,
 * started again with another argument. The daemon itself never opens the driver.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/record/identity.h"
#include "daemon/server/loop/loop.h"

/*
 * Helpers at a time. A machine's disks and links do not gain from more. A helper may take as long
 * as its program's user likes, who can stop the program meanwhile. So each user has a part
 * (pool.h).
 */
#define TD_HELPERS_MAX 16

struct td_checkpoint_order;
struct td_node;

struct td_helper {
	struct td_source source; /* must be first: the loop hands it back. fd -1: not in use */
	pid_t pid;
	int steps;              /* what it writes (TD_CHECKPOINT_FD) */
	struct td_identity who; /* the user of its program */
	uint64_t number;        /* of the act */
};

struct td_helpers {
	struct td_loop *loop;
	struct td_node *node;
	struct td_helper all[TD_HELPERS_MAX];
};

void td_helpers_init(struct td_helpers *helpers, struct td_loop *loop, struct td_node *node);
/* Helpers go on alone: the driver must not be left in the middle. */
void td_helpers_deinit(struct td_helpers *helpers);

/* Returns whether one more helper may work for that user. */
bool td_helpers_allow(const struct td_helpers *helpers, struct td_identity who);
/* Starts one. Returns 0, -EAGAIN if there are too many, or another -errno. */
int td_helpers_start(struct td_helpers *helpers, const struct td_checkpoint_order *order);
/* Hands on the results of those that have ended. */
void td_helpers_turn(struct td_helpers *helpers, uint64_t now_ns);
