/*
 * Shares memory of a backend that has no driver handles with other processes. cuIpcGetMemHandle
 * returns a handle of tandem's own: where the exporter listens (a unix socket in the directory of
 * proto/shared_dir.h, and one in the abstract namespace), and an id that cannot be guessed. A
 * process that opens the handle connects; the exporter asks the kernel whose process it is and
 * sends the descriptors of the chunks. The connection holds the memory, so the hold ends with the
 * process (ADR 0009).
 *
 *   exporter   pins the memory from the first handle on, until it is freed and nobody has it
 *              open; the memory is charged to the exporter all the time
 *   importer   maps the chunks again; is charged nothing
 *
 * A program without tandem that opens such a handle gets an error from the driver. The daemon is
 * told that such handles exist (shares.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda/types.h"
#include "preload/swap/swap.h"
#include "proto/shared_dir.h"

struct td_conn;

#define TD_IPC_ID 16

/* -- the exporter's side (ipc_export.c) -- */

/* address: the beginning of an allocation of the backend. CUresult. */
int td_ipc_export(uint64_t address, CUipcMemHandle *ret);

/* -- the importer's side (ipc_import.c) -- */

/* Is it a handle of tandem's, from any process? */
bool td_ipc_is_ours(const CUipcMemHandle *handle);
int td_ipc_open(const CUipcMemHandle *handle, uint64_t *ret_address);
/* CUresult, or TD_BACKEND_NOT_MINE. *ret_last: the address is no longer mapped. */
int td_ipc_close(uint64_t address, bool *ret_last);
void td_ipc_context_ends(void *context);
/* See td_swap_describe and td_swap_holds. */
int td_ipc_describe(uint64_t address, struct td_swap_info *ret);
int td_ipc_holds(uint64_t address, uint64_t bytes);

/* Does the handle name this process's own socket? */
bool td_ipc_is_own(const uint8_t socket[TD_IPC_ID]);
void td_ipc_import_forked(void);

/* The process ends: leaves no file behind. */
void td_ipc_exiting(void);

/* Called in the child of a fork, for both sides: nothing of the parent's belongs to the child. */
void td_ipc_forked(void);

/* -- sockets (ipc_socket.c) -- */

/* The contents of the 64 bytes. */
struct td_ipc_handle {
	char magic[8];
	uint8_t socket[TD_IPC_ID], id[TD_IPC_ID];
	uint8_t zero[24];
};

struct td_ipc_request {
	char magic[8];
	uint8_t id[TD_IPC_ID];
};

/* The chunks' descriptors follow in packets of at most TD_IPC_FDS. */
struct td_ipc_reply {
	char magic[8];
	uint32_t result, chunks; /* CUresult */
	uint64_t each_bytes, last_bytes;
	uint64_t offset, bytes; /* the allocation in them */
};

#define TD_IPC_FDS 32

extern const char td_ipc_magic[8];

/* Returns false if the system gives no random bytes. */
bool td_ipc_random(uint8_t ret[TD_IPC_ID]);

/* Connections and the listener, so that a child of fork can close them all. NULL: too many. */
struct td_conn *td_ipc_conn_new(int fd);
void td_ipc_conn_free(struct td_conn *conn);
void td_ipc_conns_forked(void);
/* The same, once the other end has seen it, or has had time to. */
void td_ipc_hang_up(struct td_conn *conn);

/*
 * A path is reached from wherever the daemon's socket is; an abstract name, within a network
 * namespace and without a daemon.
 */
enum td_ipc_way { TD_IPC_PATH, TD_IPC_ABSTRACT, TD_IPC_WAYS };

/*
 * Returns a listening socket, or -errno. *ret_file is the file at its path. -EADDRINUSE: the path
 * exists and cannot be removed.
 */
int td_ipc_listen(
	const uint8_t name[TD_IPC_ID], enum td_ipc_way way, struct td_shared_file *ret_file);
/* Does the path still lead to that file? */
bool td_ipc_is_there(const uint8_t name[TD_IPC_ID], const struct td_shared_file *file);
/* Removes what is left at its path. */
void td_ipc_remove(const uint8_t name[TD_IPC_ID]);
/* A connection to a process of this user's, or -errno; -EACCES: it is another user's. */
int td_ipc_connect(const uint8_t name[TD_IPC_ID]);
/* Does the other end belong to a process of this user? */
bool td_ipc_is_same_user(int fd);

/* Whole packets, waiting boundedly. 0 or -errno; fds that come but are not asked for are closed. */
int td_ipc_send(int fd, const void *bytes, size_t n, const int *fds, unsigned count);
/* ret_count: in, how many may come; out, how many have. */
int td_ipc_receive(int fd, void *ret, size_t n, int *ret_fds, unsigned *ret_count);
