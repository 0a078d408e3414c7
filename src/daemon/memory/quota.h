/*
 * Hard memory limits of jobs (`tandem run --mem`): all processes of a job together never have more
 * than that allocated on a GPU.
 *
 * Each client may allocate what its last GRANT says without asking, and is charged for that as
 * account.h says. A job of one process is granted all of its limit, and never asks. In a job of
 * several each has a little in advance, which is called back when another does not get what it asks
 * for. An allocation is refused only once every other process has said, after the question, what it
 * has: so what one has freed another can have at once.
 *
 * Without a limit the same goes for the GPU itself: the processes of a job hold it together, so no
 * turn helps a job that has more than there is.
 *
 * Lowering a limit below what a job has takes nothing away: the job gets nothing more until it has
 * freed enough. The memory of its contexts and code (overhead.h) counts too. It cannot be refused,
 * so there is less to allocate once it is known. Imported memory counts until it is known whose it
 * is (docs/decisions/0009).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_client;
struct td_gpu;
struct td_job;
struct td_node;

/* The job's limit on that GPU in bytes; UINT64_MAX: none. */
uint64_t td_quota_bytes(
	const struct td_node *node, const struct td_job *job, const struct td_gpu *gpu);

/*
 * Returns how much of that limit the job's contexts and code take. 0 where the GPU holds less than
 * the limit: its capacity counts them already.
 */
uint64_t td_quota_overhead(
	const struct td_node *node, const struct td_job *job, const struct td_gpu *gpu);

/*
 * Sums up what every job's clients have, and what is charged to limits and GPUs. At the beginning
 * of a step, and before anything is told outside of one.
 */
void td_quota_gather(struct td_node *node);

/* At the end of a step, in debug builds: do the accounts' invariants hold (account.h)? */
void td_quota_check(const struct td_node *node);

/* The bytes that cannot leave the GPU. */
uint64_t td_quota_stays(const struct td_client *client);

/* All that the client is to have unasked, told with so much on the device and client->told_gate. */
uint64_t td_quota_total(const struct td_client *client, uint64_t device_bytes);
/* Was it told more than it is to have by now? */
bool td_quota_has_too_much(const struct td_client *client);

/* The most that the client may have now. */
uint64_t td_quota_room(const struct td_client *client);

/* And the most that its limit may be. */
uint64_t td_quota_limit(const struct td_client *client);

/* The limit that the client should have, given that the plan would let it have `planned_bytes`. */
uint64_t td_quota_plan(const struct td_client *client, uint64_t planned_bytes);

enum td_quota_verdict {
	TD_QUOTA_FITS,    /* as far as the job's limit and the GPU's size go */
	TD_QUOTA_WAIT,    /* others are to report, or to give up what they hold in advance */
	TD_QUOTA_REFUSED, /* it would exceed the limit, or the GPU */
};
/* May the allocation that the client waits for be had? */
enum td_quota_verdict td_quota_need(
	const struct td_node *node, const struct td_client *client, uint64_t now_ns);

/*
 * Would its job have more than the GPU with what the client asks for? No turn makes room for that.
 */
bool td_quota_exceeds_gpu(const struct td_node *node, const struct td_client *client);

/* Must it be asked what it has before `needing` can be refused? */
bool td_quota_is_stale(const struct td_client *client, const struct td_client *needing);

/* How long others are waited for: one that is stopped never answers. */
uint64_t td_quota_deadline_ns(const struct td_client *needing);
