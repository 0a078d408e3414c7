/*
 * The spaces that peers come from: the daemon's own PID namespace and containers
 * (record/identity.h). A peer's PID namespace is read once, when its connection is accepted.
 *
 * A space is a PID namespace directly below the daemon's; those that a container makes inside
 * itself are the same space. One that an ordinary user has made in a user namespace of his own is
 * no container but his own programs, so it is the daemon's own space. A peer outside of the
 * daemon's PID namespace, or whose namespace cannot be read, is in TD_SPACE_UNKNOWN.
 *
 * The kernel gives the number of a namespace that has ended to a later one. So a space has a number
 * of our own, which is never given again, and the namespace is kept open as long as its space is
 * known: while it has connections, and for the last TD_SPACES_UNUSED_MAX of them afterwards.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "daemon/record/identity.h"

#define TD_SPACES_UNUSED_MAX 32

struct ucred;

/* A namespace is known by these numbers while somebody has it open. */
struct td_space_file {
	dev_t device;
	ino_t inode;
};

struct td_spaces {
	struct td_list all; /* the known spaces; those used last come last */
	uint32_t next;      /* the number of the next one */
	uint32_t unused;    /* the number of known spaces without a connection */
	struct td_space_file own_pid, own_user;
	/* False: the kernel has no PID namespaces, so all processes are in the same one. */
	bool has_namespaces;
	bool is_readable; /* /proc shows the daemon's own PID namespace */
	/*
	 * The uid that the kernel reports for users that have none in the daemon's user namespace;
	 * (uid_t)-1: all users have one.
	 */
	uid_t nobody;
};

/*
 * Returns 0, or -ENOENT if /proc does not show the processes of this PID namespace: then all peers
 * are in TD_SPACE_UNKNOWN.
 */
int td_spaces_init(struct td_spaces *spaces);
void td_spaces_deinit(struct td_spaces *spaces);

/*
 * Returns who is at the other end of the connection, as SO_PEERCRED reports him. Each call is
 * followed by one of td_spaces_leave() when the connection ends.
 */
struct td_identity td_spaces_enter(
	struct td_spaces *spaces, int socket, const struct ucred *credentials);
void td_spaces_leave(struct td_spaces *spaces, struct td_identity who);

/*
 * Returns the number of the space of that namespace, with one more use. Takes fd over, which keeps
 * the namespace. TD_SPACE_UNKNOWN: memory is short.
 */
uint32_t td_spaces_use(struct td_spaces *spaces, const struct td_space_file *file, int fd);

/*
 * Parses /proc/PID/status. Returns whether the process is in the PID namespace that this /proc
 * shows, and not in one below: then it has one number only.
 */
bool td_spaces_parse_status(const char *text);
/*
 * Parses /proc/PID/uid_map. Returns whether every user has a uid in that user namespace.
 */
bool td_spaces_parse_uid_map(const char *text);
