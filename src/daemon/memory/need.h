/*
 * Allocations that wait: a client that would exceed its last GRANT asks (ASK), and gets a verdict
 * as soon as one is possible.
 *
 *   OK      the limit covers it on the device; or the driver pages it and nobody has to make room
 *   LATER   the client's gate is closed: the bytes come to the device with its next fill
 *   HOST    the plan leaves a part of the client's memory on the host
 *   NO      no turn could ever make room: the request is beyond the job's limit or the GPU, or
 *           memory that cannot leave is in its way
 *
 * If others' memory has no place on the host at the moment, the client waits for it, for
 * memory.patience in all. With TANDEM_HOST_FULL=refuse it is refused instead.
 *
 * Invariant: each ASK gets one verdict, and the granted bytes count as demanded from then on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_node;

/* Returns whether some client waits for a verdict, as td_quota_gather() has counted. */
bool td_need_is_there(const struct td_node *node);

/* Gives the verdicts that are possible at the end of a step. Returns whether one was a refusal. */
bool td_need_step(struct td_node *node, uint64_t now_ns);

/*
 * An allocation may wait until other processes answer or make room. Returns when the first such
 * wait ends without success, or TD_NEVER if there is none.
 */
uint64_t td_need_deadline_ns(const struct td_node *node, uint64_t now_ns);
