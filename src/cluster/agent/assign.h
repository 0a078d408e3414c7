/*
 * The assignments of a node's jobs. With a folder they are files for the programs of the node: the
 * file FOLDER/JOB has the value of assign/JOB while that names this node. Whoever starts a job
 * there sees what holds for it now, also after it was requeued.
 */
#pragma once

#include "cluster/state/mirror.h"

struct td_assign {
	struct td_mirror mirror;
	const char *folder, *node;
	int folder_fd;
};

/*
 * Makes the folder, unless that is NULL, and deletes files of an earlier agent once the state has
 * been read. The texts must live longer. Returns 0 or -errno.
 */
int td_assign_init(struct td_assign *assign, struct td_state *state, const char *prefix,
	const char *folder, const char *node);
void td_assign_deinit(struct td_assign *assign);
int td_assign_turn(struct td_assign *assign, uint64_t now_ns, uint64_t *ret_wakeup_ns);

/*
 * Whether this user's job of this name, such as slurm.12, has guaranteed resources on this node. It
 * had not at first if it began as a guest.
 */
bool td_assign_is_guaranteed(const struct td_assign *assign, const char *job, uint32_t uid);
/* Whether a value of assign/JOB has a place on this node. */
bool td_assign_is_for(const char *value, size_t length, const char *node);
