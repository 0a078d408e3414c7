/*
 * Sockets by which programs that share memory find each other, in a directory beside the daemon's
 * socket. One mount into a container thus serves both.
 *
 * The daemon makes the directory: for all users if it is root's, else for its own user. Socket
 * names are random and only the directory's owner can list them. A socket has mode 0600 from its
 * first moment. Bound paths are public all the same (/proc/net/unix), so another user may take a
 * name after its owner has lost it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TD_SHARED_DIR_MAX 128

/* Identifies a socket file, since its name may be reused by another process. */
struct td_shared_file {
	uint64_t device, inode;
};

/* Returns the directory "SOCKET.ipc" of the daemon's socket in buf, or NULL if it does not fit. */
char *td_shared_dir(char *buf, size_t len, const char *socket);

/*
 * Bind or connect to a name in the directory. A path that is too long for a unix address goes
 * through /proc. Return 0 or -errno.
 */
int td_shared_bind(int fd, const char *dir, const char *name);
int td_shared_connect(int fd, const char *dir, const char *name);
/* Looks the socket up. Returns 0, -ENOENT, or -EPERM if it is no socket or another user's. */
int td_shared_find(const char *dir, const char *name, struct td_shared_file *ret);
void td_shared_remove(const char *dir, const char *name);
