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
	pid_t pid; /* process id of the owner; 0: not known */
	uid_t uid;
	char socket[108];
};

/*
 * Opens the directory, and makes it if it does not exist. "auto" is $TANDEM_LOCKS, else
 * /run/lock/tandem, else /tmp/tandem-locks; any other text is a path. Returns a descriptor, or
 * -errno; -EPERM: others could rename files in the directory.
 */
int td_gpu_locks_open(const char *path);

/*
 * Takes the lock of a GPU. Returns a descriptor that holds it; -EBUSY with *ret_owner: another
 * daemon has it; or another -errno: it cannot be taken, and its owner is not known.
 */
int td_gpu_lock_take(
	int directory, const uint8_t *uuid, const char *socket, struct td_gpu_owner *ret_owner);
/* Closes the descriptor and removes the file if it is still the locked one. */
void td_gpu_lock_release(int directory, const uint8_t *uuid, int fd);

/*
 * Finds the owner of the lock file `name` without taking the lock. Returns 0 with the owner;
 * TD_GPU_LOCK_FREE; or -errno.
 */
int td_gpu_lock_owner(int directory, const char *name, struct td_gpu_owner *ret_owner);
