/*
 * Allocations that wait: a client that would exceed its last GRANT asks (ASK), and gets a verdict
 * once it can be given.
 *
 *   OK      the limit covers it on the device; or the driver pages it and nobody has to make room
 *   LATER   the client's gate is closed: the bytes come to the device with its next fill
 *   HOST    its plan leaves a part of its memory on the host
 *   NO      no turn could ever make room: it is beyond its job's limit or the GPU, or memory that
 *           cannot leave is in its way
 *
 * Others' memory that has no place on the host at the moment is waited for, for memory.patience in
 * all, unless the process would rather be refused (TANDEM_HOST_FULL=refuse).
 *
 * Invariant: each ASK gets one verdict, and what was granted counts as demanded from then on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_node;

/* At the end of a step: answers what can be answered. True: something was refused. */
bool td_need_step(struct td_node *node, uint64_t now_ns);

/*
 * An allocation may wait until other processes answer or make room. Returns when the first such
 * wait ends without success, or TD_NEVER if there is none.
 */
uint64_t td_need_deadline_ns(const struct td_node *node, uint64_t now_ns);
