/*
 * One daemon per GPU: a lock file per GPU, named by its UUID, in a directory that all users of the
 * machine share. The kernel holds the lock (an open file description lock), so a dead daemon's lock
 * is gone with it. The file's text names the owner, for people only.
 *
 * The directory is sticky and writable for all, as /tmp is. Nothing in it is trusted: links, files
 * with other names, and files that are not plain are refused; an invalid text names nobody. A user
 * can still share a GPU between two daemons: the lock is a courtesy among daemons, not a guard.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TD_GPU_LOCK_FREE 1

struct td_gpu_owner {
	pid_t pid; /* 0: not known */
	uid_t uid;
	char socket[108];
};

/*
 * Opens the directory, making it if needed. "auto": $TANDEM_LOCKS, /run/lock/tandem, else
 * /tmp/tandem-locks; anything else is a path. Returns a descriptor, or -errno; -EPERM: others could
 * rename files in the directory.
 */
int td_gpu_locks_open(const char *path);

/*
 * Returns a descriptor that holds the lock; -EBUSY with *ret_owner; or another -errno: the lock
 * cannot be had, and its owner is unknown.
 */
int td_gpu_lock_take(
	int directory, const uint8_t *uuid, const char *socket, struct td_gpu_owner *ret_owner);
/* Closes the descriptor and takes the file away, if it is ours to take. */
void td_gpu_lock_release(int directory, const uint8_t *uuid, int fd);

/*
 * Who holds the lock of the file `name`? 0 with the owner, TD_GPU_LOCK_FREE, or -errno. Does not
 * take the lock.
 */
int td_gpu_lock_owner(int directory, const char *name, struct td_gpu_owner *ret_owner);
