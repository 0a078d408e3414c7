/*
 * Hard memory limits of jobs (`tandem run --mem`): all processes of a job together never have more
 * than that allocated on a GPU.
 *
 * Each client may allocate as much as its last GRANT says without asking, and is charged for that
 * as account.h says. A job of one process is granted all of its limit, and never asks. In a job of
 * several processes, each has a little in advance. That is called back when another process does
 * not get what it asks for. An allocation is refused only after every other process has reported,
 * after the request, what it has. So memory that one process frees is available to another at once.
 *
 * A job without a limit is limited by the GPU in the same way: its processes hold the GPU together,
 * so no turn helps a job that has more than the GPU's memory.
 *
 * Lowering a limit below what a job has takes nothing away: the job gets nothing more until it has
 * freed enough. The memory of its contexts and code (overhead.h) counts too. It cannot be refused,
 * so there is less to allocate once it is known. Imported memory counts until its owner is known
 * (docs/decisions/0009).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_client;
struct td_gpu;
struct td_job;
struct td_node;

/* Returns the job's limit on that GPU in bytes; UINT64_MAX if it has none. */
uint64_t td_quota_bytes(
	const struct td_node *node, const struct td_job *job, const struct td_gpu *gpu);

/*
 * Returns how many bytes of that limit the job's contexts and code take. Returns 0 if the GPU holds
 * less than the limit, since its capacity counts them already.
 */
uint64_t td_quota_overhead(
	const struct td_node *node, const struct td_job *job, const struct td_gpu *gpu);

/*
 * Sums up what every job's clients have, and what is charged to limits and GPUs. Called at the
 * beginning of a step, and before anything is told outside of one.
 */
void td_quota_gather(struct td_node *node);

/* Asserts the accounts' invariants (account.h) at the end of a step, in debug builds only. */
void td_quota_check(const struct td_node *node);

/* Returns the client's bytes that cannot leave the GPU. */
uint64_t td_quota_stays(const struct td_client *client);

/*
 * Returns the bytes that the client may have in all without asking, given device_bytes on the
 * device and the gate client->told_gate.
 */
uint64_t td_quota_total(const struct td_client *client, uint64_t device_bytes);
/* Returns whether the client was told more than it may have by now. */
bool td_quota_has_too_much(const struct td_client *client);

/* Returns the most bytes that the client may have now, on the device and the host together. */
uint64_t td_quota_room(const struct td_client *client);

/* Returns the most bytes that its limit on the device may be. */
uint64_t td_quota_limit(const struct td_client *client);

/*
 * Returns the limit on the device that the client should have, given that the plan grants
 * planned_bytes.
 */
uint64_t td_quota_plan(const struct td_client *client, uint64_t planned_bytes);

enum td_quota_verdict {
	TD_QUOTA_FITS, /* within the job's limit and the GPU's size */
	/* Other clients must first report, or give up memory that they hold in advance. */
	TD_QUOTA_WAIT,
	TD_QUOTA_REFUSED, /* the allocation would exceed the job's limit or the GPU's size */
};
/* Judges the allocation that the client waits for. */
enum td_quota_verdict td_quota_need(
	const struct td_node *node, const struct td_client *client, uint64_t now_ns);

/*
 * Returns whether the client's job would have more than the GPU's memory with this allocation. No
 * turn makes room for that.
 */
bool td_quota_exceeds_gpu(const struct td_node *node, const struct td_client *client);

/* Returns whether the client must report what it has before `needing` can be refused. */
bool td_quota_is_stale(const struct td_client *client, const struct td_client *needing);

/*
 * Returns until when `needing` waits for the reports of others. A stopped process never sends one.
 */
uint64_t td_quota_deadline_ns(const struct td_client *needing);
