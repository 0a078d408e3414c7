/*
 * Where programs that share memory meet: sockets of theirs in a directory beside the daemon's socket, so that what is mounted into a container for the one
 * serves the other. The daemon makes it: for all users where it is root's, else for its own. Names are random and can be listed by its owner only; a
 * socket is its owner's alone (mode 0600) from the moment it is there. The kernel tells everybody what paths are bound (/proc/net/unix), so that a name that was lost may
 * be taken by another user.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TD_SHARED_DIR_MAX 128

/* Names can come to be somebody else's: which file it is. */
struct td_shared_file {
	uint64_t device, inode;
};

/* "SOCKET.ipc". NULL: it does not fit. */
char *td_shared_dir(char *buf, size_t len, const char *socket);

/* Its address may be longer than a unix address; then the way leads through /proc. 0 or -errno. */
int td_shared_bind(int fd, const char *dir, const char *name);
int td_shared_connect(int fd, const char *dir, const char *name);
/* What is there. 0, -ENOENT, or -EPERM: no socket, or another user's. */
int td_shared_find(const char *dir, const char *name, struct td_shared_file *ret);
void td_shared_remove(const char *dir, const char *name);
