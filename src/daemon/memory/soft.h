/*
 * Soft memory limits of jobs (`tandem run --mem-soft`), and plans that leave a part of a job on the
 * host (AntMan's universal memory): what a client is to have on the device, and when what is there
 * has to change its place.
 *
 * A job's soft limit is of what all its processes together have on a GPU. What they have there
 * already counts first, then what they ask for, in order of arrival: so nothing moves that need
 * not. Beyond it memory is granted, on the host, within the device's reach. Memory that cannot
 * leave the device (fixed.h) is granted there, whatever the limit says; other memory leaves for it.
 *
 * A job that has more than its GPU is held to the GPU's size in the same way, whatever its limits:
 * it would fill for ever. So is one that is let in and comes to have more than others' memory that
 * cannot leave lets it have: those others may wait behind it, and would never be done.
 *
 * One that waits to be let in waits for room for all of its memory, but for no longer than
 * memory.patience if what is in its way cannot leave: whoever has that may be idle for days.
 *
 * A chunk changes its place only while nothing runs. At a hand-over that costs nothing more; when
 * the limit changes, or room is there for what lies on the host, the job is drained for the
 * exchange and goes on. For room it is drained at most once in TD_SOFT_EVERY_NS, and not again
 * before anything has changed: what is left may be less than a chunk.
 *
 * A program that says that it keeps memory for later (include/tandem/tandem.h) is asked first: it
 * is told the lower limit, and has two steps to drop what it only keeps, which copies nothing
 * (AntMan 3.1.1). What is too much then is moved.
 *
 * Invariant: a client whose driver has no such memory, or whose backend moves nothing, is never
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
/* The longest that a program is waited for that is to give back by itself. */
#define TD_SOFT_ASK_NS 1000000000ull

/* The job's soft limit on that GPU in bytes; UINT64_MAX: none. */
uint64_t td_soft_bytes(
	const struct td_node *node, const struct td_job *job, const struct td_gpu *gpu);

/*
 * The most that the job can have on that GPU: once it was let in, less what others have that cannot
 * leave it.
 */
uint64_t td_soft_there(
	const struct td_node *node, const struct td_job *job, const struct td_gpu *gpu);

/*
 * At the beginning of a step, before td_soft_gather: a job that has waited for memory.patience to
 * be let in, for others' memory that cannot leave, waits for it no more. What it asks for is
 * refused then where it has to be on the device; other memory of it lies on the host, as that of a
 * job that is let in. Returns when to look again, or TD_NEVER.
 */
uint64_t td_soft_wait(struct td_node *node, uint64_t now_ns);

/* At the beginning of a step: each client's part of its job's limit. */
void td_soft_gather(struct td_node *node);

/* The bytes that the client is to have on the device: policies know of no others. */
uint64_t td_soft_demand(const struct td_client *client);

/* Is a part of what it demands to be on the host? */
bool td_soft_spills(const struct td_client *client);

enum td_soft_place {
	TD_SOFT_HAS_PLACE,
	TD_SOFT_KEPT_OUT, /* not while others' memory that cannot leave is there: td_soft_wait */
	TD_SOFT_STRANDED, /* not while others' memory has no place on the host */
	TD_SOFT_NO_PLACE, /* it is more than can come to be free for its job */
};
/* Can there be a place for what the client asks for? */
enum td_soft_place td_soft_place(const struct td_node *node, const struct td_client *client);

/*
 * After the policy's step: the plan's limit may be a part of what the client demands, if the policy
 * can mean that.
 */
void td_soft_plan(const struct td_node *node, struct td_client *client);

/* Which jobs are to be drained for an exchange. Returns when to look again, or TD_NEVER. */
uint64_t td_soft_step(struct td_node *node, uint64_t now_ns);

/* The client's memory is where it is to be. */
void td_soft_settled(struct td_client *client, uint64_t now_ns);
