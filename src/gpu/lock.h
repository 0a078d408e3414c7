/*
 * One daemon per GPU: a lock file per GPU, named by its UUID, in a directory that all users of the machine share. The lock is the kernel's (an open file
 * description lock), so that of a dead daemon is gone with it; the file's text names the owner and is for people alone.
 *
 * The directory is writable for all and sticky, as /tmp is. Nothing in it is trusted: links, files with other names, and what is no plain
 * file are refused; a text that makes no sense names nobody. Who would rather share a GPU twice can always do so: the lock is a courtesy
 * among daemons, not a guard.
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
 * Opens the directory, made if it is not there. "auto": $TANDEM_LOCKS, /run/lock/tandem, else /tmp/tandem-locks; anything else is a path.
 * A descriptor, or -errno: -EPERM for a directory that others could rename files in.
 */
int td_gpu_locks_open(const char *path);

/* A descriptor that holds the lock; -EBUSY with *ret_owner; another -errno: it cannot be had, nor be known who has it. */
int td_gpu_lock_take(
	int directory, const uint8_t *uuid, const char *socket, struct td_gpu_owner *ret_owner);
/* Closes the descriptor and takes the file away, if it is ours to take. */
void td_gpu_lock_release(int directory, const uint8_t *uuid, int fd);

/* Who holds the lock in the file called name? 0; TD_GPU_LOCK_FREE; -errno. Does not take it. */
int td_gpu_lock_owner(int directory, const char *name, struct td_gpu_owner *ret_owner);
