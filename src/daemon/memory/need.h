/*
 * Allocations that wait: a client that would exceed the limit it was told asks (ASK), and is answered once it is known what becomes of it.
 *
 * It is granted on the device when the limit covers it; off the device while its gate is closed, and on the host where its plan leaves a
 * part there; to who is let in and pages itself, once nobody is to make room for it; refused where no turn could ever make room: beyond its job's limit, beyond the GPU, beside memory that cannot leave. Memory of
 * others that has no place on the host at the moment is waited for, for ten seconds in all, unless the process would rather be refused (TANDEM_HOST_FULL=refuse).
 *
 * Invariant: each ASK gets one verdict, and what was granted counts as demanded from then on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_node;

/* At the end of a step: answers what can be answered. True: some was refused, and nothing is kept for it any more. */
bool td_need_step(struct td_node *node, uint64_t now_ns);

/* When the first of those that still wait gives up those it waits for, or TD_NEVER. */
uint64_t td_need_deadline_ns(const struct td_node *node, uint64_t now_ns);
