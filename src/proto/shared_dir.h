/*
 * Where programs that share memory meet: sockets of theirs in a directory beside the daemon's socket, so that what is mounted into a container for the one
 * serves the other. The daemon makes it: for all users where it is root's, else for its own. Names are random and can be listed by its owner only; a
 * socket is its owner's alone (mode 0600) from the moment it is there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TD_SHARED_DIR_MAX 128

/* "SOCKET.ipc". NULL: it does not fit. */
char *td_shared_dir(char *buf, size_t len, const char *socket);

/* Its address may be longer than a unix address; then the way leads through /proc. 0 or -errno. */
int td_shared_bind(int fd, const char *dir, const char *name);
int td_shared_connect(int fd, const char *dir, const char *name);
bool td_shared_is_there(const char *dir, const char *name);
void td_shared_remove(const char *dir, const char *name);
