/*
 * Shares the backend's memory, which has no driver handle, with other processes. cuIpcGetMemHandle
 * returns tandem's own handle. It names the exporter's socket (a path in the directory of
 * proto/shared_dir.h, and an abstract name) and an id that cannot be guessed. A process that opens
 * the handle connects. The exporter asks the kernel for the user of that process and sends the
 * descriptors of the chunks. The memory stays open until the connection closes, at the latest when
 * that process ends (ADR 0009).
 *
 *   exporter   pins the memory from the first handle until it is freed and no importer has it open;
 *              the memory is charged to the exporter all that time
 *   importer   maps the chunks too; nothing is charged to it
 *
 * In a program without tandem the driver refuses such a handle with an error. The daemon is told
 * that such handles exist (shares.h).
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

/* Makes a handle for the backend's allocation that begins at `address`. Returns a CUresult. */
int td_ipc_export(uint64_t address, CUipcMemHandle *ret);

/* -- the importer's side (ipc_import.c) -- */

/* Returns whether tandem made this handle, in any process. */
bool td_ipc_is_ours(const CUipcMemHandle *handle);
int td_ipc_open(const CUipcMemHandle *handle, uint64_t *ret_address);
/*
 * Closes an imported address. Returns a CUresult, or TD_BACKEND_NOT_MINE. *ret_last: it was the
 * last open of this memory, so it is no longer mapped.
 */
int td_ipc_close(uint64_t address, bool *ret_last);
void td_ipc_context_ends(void *context);
/* Like td_swap_describe and td_swap_holds, for imported memory. */
int td_ipc_describe(uint64_t address, struct td_swap_info *ret);
int td_ipc_holds(uint64_t address, uint64_t bytes);

/* Returns whether the handle names this process's own socket. */
bool td_ipc_is_own(const uint8_t socket[TD_IPC_ID]);
void td_ipc_import_forked(void);

/* Called when the process ends: removes the socket's file. */
void td_ipc_exiting(void);

/*
 * Called in a forked child, for both sides: drops everything, since nothing of it is the child's.
 */
void td_ipc_forked(void);

/* -- sockets (ipc_socket.c) -- */

/* The layout of the 64 bytes of a CUipcMemHandle. */
struct td_ipc_handle {
	char magic[8];
	uint8_t socket[TD_IPC_ID], id[TD_IPC_ID];
	uint8_t zero[24];
};

struct td_ipc_request {
	char magic[8];
	uint8_t id[TD_IPC_ID];
};

/* The exporter's answer. The chunks' descriptors follow in packets of at most TD_IPC_FDS. */
struct td_ipc_reply {
	char magic[8];
	uint32_t result, chunks; /* a CUresult; number of chunks */
	uint64_t each_bytes, last_bytes;
	uint64_t offset, bytes; /* where the allocation lies within the chunks */
};

#define TD_IPC_FDS 32

extern const char td_ipc_magic[8];

/* Gets a random id. Returns false if the system gives no random bytes. */
bool td_ipc_random(uint8_t ret[TD_IPC_ID]);

/*
 * Registers a connection or the listener, so that a forked child can close it. Returns NULL if
 * there are too many.
 */
struct td_conn *td_ipc_conn_new(int fd);
void td_ipc_conn_free(struct td_conn *conn);
void td_ipc_conns_forked(void);
/* Closes a connection once the other end has noticed that it ends, or has had the time to. */
void td_ipc_hang_up(struct td_conn *conn);

/*
 * The two ways to reach an exporter. The path works wherever the daemon's socket can be reached.
 * The abstract name works within one network namespace, without a daemon.
 */
enum td_ipc_way { TD_IPC_PATH, TD_IPC_ABSTRACT, TD_IPC_WAYS };

/*
 * Returns a listening socket, or -errno; -EADDRINUSE: the path exists and cannot be removed.
 * *ret_file identifies the file at its path.
 */
int td_ipc_listen(
	const uint8_t name[TD_IPC_ID], enum td_ipc_way way, struct td_shared_file *ret_file);
/* Returns whether the path still names the file that was created. */
bool td_ipc_is_there(const uint8_t name[TD_IPC_ID], const struct td_shared_file *file);
/* Removes the file at the path of this name. */
void td_ipc_remove(const uint8_t name[TD_IPC_ID]);
/*
 * Returns a connection to a process of the same user, or -errno; -EACCES: another user's process.
 */
int td_ipc_connect(const uint8_t name[TD_IPC_ID]);
/* Returns whether the process at the other end belongs to this user. */
bool td_ipc_is_same_user(int fd);

/* Sends a whole packet; waits for a limited time. Returns 0 or -errno. */
int td_ipc_send(int fd, const void *bytes, size_t n, const int *fds, unsigned count);
/*
 * Receives a whole packet. *ret_count: in, how many descriptors may come; out, how many came. Those
 * beyond it are closed.
 */
int td_ipc_receive(int fd, void *ret, size_t n, int *ret_fds, unsigned *ret_count);
