/*
 * Soft memory limits of jobs (`tandem run --mem-soft`), and plans that leave a part of a job on the
 * host (AntMan's universal memory). This module decides how much each client is to have on the
 * device, and when memory has to move for that.
 *
 * A job's soft limit applies to the memory of all its processes together on a GPU. Memory that is
 * already there counts first, then requests in order of arrival, so that nothing moves without
 * need. Beyond the limit memory is granted on the host, where the device can reach it. Memory that
 * cannot leave the device (fixed.h) is granted there whatever the limit says; other memory leaves
 * for it.
 *
 * A job that has more than its GPU is held to the GPU's size in the same way, whatever its limits.
 * Otherwise its fill would never end. The same goes for a job that is let in and then grows beyond
 * what others' immovable memory leaves: those others may wait behind it, so waiting for them would
 * not end.
 *
 * A job that waits to be let in waits for room for all of its memory. If memory that cannot leave
 * is in its way, it waits for at most memory.patience, since the owner may be idle for days.
 *
 * A chunk of memory moves only while nothing runs. At a hand-over that costs nothing more. When the
 * limit changes, or room appears for memory on the host, the job is drained for the exchange and
 * goes on. For room it is drained at most once in TD_SOFT_EVERY_NS, and not again before something
 * has changed: the remaining room may be less than a chunk.
 *
 * A program that says that it keeps memory for later (include/tandem/tandem.h) is asked first. It
 * is told the lower limit and has two steps to drop its caches, which copies nothing (AntMan
 * 3.1.1). Any excess that remains is moved.
 *
 * Invariant: a client whose driver cannot map host memory, or whose backend moves nothing, is never
 * given less than it demands.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_client;
struct td_gpu;
struct td_job;
struct td_node;

#define TD_SOFT_EVERY_NS 1000000000ull
/* The longest time that a program is given to drop its caches. */
#define TD_SOFT_ASK_NS 1000000000ull

/* Returns the job's soft limit on that GPU in bytes; UINT64_MAX if it has none. */
uint64_t td_soft_bytes(
	const struct td_node *node, const struct td_job *job, const struct td_gpu *gpu);

/*
 * Returns the most bytes that the job can have on that GPU. For a job that may run, that is the
 * capacity less the immovable memory of the others.
 */
uint64_t td_soft_there(
	const struct td_node *node, const struct td_job *job, const struct td_gpu *gpu);

/*
 * Called at the beginning of a step, before td_soft_gather(). Ends the wait of a job that was kept
 * out for memory.patience by others' memory that cannot leave. From then on a request that must be
 * on the device is refused, and the job's other memory may lie on the host, as if it were let in.
 * Returns when to call it again, or TD_NEVER.
 */
uint64_t td_soft_wait(struct td_node *node, uint64_t now_ns);

/* Computes each client's part of its job's limit at the beginning of a step. */
void td_soft_gather(struct td_node *node);

/* Returns the bytes that the client is to have on the device. Policies see only these. */
uint64_t td_soft_demand(const struct td_client *client);

/* Returns whether a part of what the client demands is to be on the host. */
bool td_soft_spills(const struct td_client *client);

enum td_soft_place {
	TD_SOFT_HAS_PLACE,
	TD_SOFT_KEPT_OUT, /* others' memory that cannot leave is in the way; see td_soft_wait() */
	TD_SOFT_STRANDED, /* others' memory is in the way and has no place on the host */
	TD_SOFT_NO_PLACE, /* the allocation is larger than what can ever be free for its job */
};
/* Returns whether there can be a place for the bytes that the client asks for. */
enum td_soft_place td_soft_place(const struct td_node *node, const struct td_client *client);

/*
 * Called after the policy's step. The plan's limit may be lower than what the client demands, if
 * the policy is one that leaves memory on the host.
 */
void td_soft_plan(const struct td_node *node, struct td_client *client);

/*
 * Decides which jobs are to be drained to exchange memory. Returns when to call it again, or
 * TD_NEVER.
 */
uint64_t td_soft_step(struct td_node *node, uint64_t now_ns);

/* Records that as much of the client's memory is on the device as its limit allows. */
void td_soft_settled(struct td_client *client, uint64_t now_ns);
