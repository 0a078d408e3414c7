/*
 * A process's connection to the softgpu server: requests and answers, operations and their ends,
 * from any thread. A thread of its own receives. When the server is gone every waiter gets -EIO at
 * once, and so does every later call. Prints nothing.
 *
 * After fork() the child must not use the parent's connection: sg_client_is_ours() tells.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/server/wire.h"

struct sg_client;

/*
 * Finds the directory: $SOFTGPU_DIR, $XDG_RUNTIME_DIR/softgpu or /tmp/softgpu-UID. Returns buf, or
 * NULL if the path does not fit.
 */
char *sg_dir(char *buf, size_t len);

/*
 * Connects to the server of that directory and says HELLO. Returns 0; -ENOENT or -ECONNREFUSED if
 * there is none; -EPROTO for another build.
 */
int sg_client_new(const char *dir, struct sg_client **ret, uint32_t *ret_gpu_count);
/*
 * Does what sg_client_new() does, and calls `notice` for each NOTICE, in the receiving thread.
 * `notice` must not send requests.
 */
int sg_client_new_with_notices(const char *dir, void (*notice)(const struct sg_msg *msg),
	struct sg_client **ret, uint32_t *ret_gpu_count);
void sg_client_free(struct sg_client *client);
/* Waits until the server has ended, or has dropped this connection. */
void sg_client_await_end(struct sg_client *client);
bool sg_client_is_ours(const struct sg_client *client);

/*
 * Sends msg and waits for its REPLY, which replaces *msg. Bytes after the reply go to extra (at
 * most extra_len; their number in *ret_len; both may be NULL). Returns 0 or -EIO; the reply's own
 * error is msg->error.
 */
int sg_client_request(struct sg_client *client, struct sg_msg *msg, void *extra, size_t extra_len,
	size_t *ret_len);

/* An operation in flight; the caller's memory until sg_client_op_wait() has returned. */
struct sg_op {
	uint64_t id;
	uint64_t start_ns, end_ns; /* modelled times */
	uint32_t gpu, context;
	bool done;
	int error;
	struct sg_op *next;
};

/*
 * An operation: BEGIN once; for compute TOUCH any number of times, and LENGTH; then wait. All
 * return 0 or -EIO.
 */
int sg_client_op_begin(struct sg_client *client, struct sg_op *op, uint32_t gpu, uint32_t context,
	enum sg_engine engine, uint64_t bytes, uint32_t flags);
/* The part of the GPU that a kernel takes when it is alone: SG_OP_LENGTH in wire.h. */
struct sg_load {
	uint32_t need_ppm, bandwidth_ppm;
};
/*
 * Begins the operation of a kernel. since_ns is when it became the next one of its stream; 0: now.
 * need_ppm is the share of the SMs that its blocks fill.
 */
int sg_client_op_begin_kernel(struct sg_client *client, struct sg_op *op, uint32_t gpu,
	uint32_t context, uint64_t since_ns, uint32_t need_ppm);
int sg_client_op_prefetch(struct sg_client *client, struct sg_op *op, uint32_t gpu,
	uint32_t context, uint32_t range, uint64_t first_byte, uint64_t bytes, bool to_device);
int sg_client_op_touch(struct sg_client *client, const struct sg_op *op,
	const struct sg_touch *runs, uint32_t count);
/* sm_ppm is the share of the SMs that had a block. */
int sg_client_op_length(struct sg_client *client, const struct sg_op *op, uint64_t ns,
	uint32_t sm_ppm, const struct sg_load *load);
int sg_client_op_wait(struct sg_client *client, struct sg_op *op);

/* Sends a message that has no answer. */
int sg_client_tell(struct sg_client *client, const struct sg_msg *msg);
/* Sets this process's numbers of GPUs: its i-th is the server's gpus[i]; SG_GPU_MAX entries. */
void sg_client_choose(struct sg_client *client, const uint32_t *gpus);
/* Renumbers GPUs after a move; the map is that of SG_CHECKPOINT_RESTORE. */
void sg_client_moved(struct sg_client *client, uint64_t map);

/* Tells the server why a context ended. */
void sg_client_xid(struct sg_client *client, uint32_t gpu, uint32_t number);
