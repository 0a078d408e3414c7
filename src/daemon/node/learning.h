/*
 * Learning from services that run: sees which services run beside which training (lessons.h), and
 * uses a service's newer curves once they are there.
 *
 * A service is studied while it answers by tandem.h, has a profile for this kind of GPU, and all
 * that works beside it is training whose layers are known, without a duty that leaves it less than
 * most of the time. The option `profiles.learn` switches it off.
 */
#pragma once

#include <stdint.h>

struct td_node;

/* Looks at all services; called after each step. Returns when to be called again. */
uint64_t td_learning_look(struct td_node *node, uint64_t now_ns);

/* Takes the newer profiles of the services that run. */
void td_learning_learnt(struct td_node *node, uint64_t now_ns);

/* Reports why nothing was learnt. */
void td_learning_failed(struct td_node *node, const char *why, uint64_t now_ns);
