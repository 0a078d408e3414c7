/*
 * The abilities of this node and of each client: the figures that a policy can be shown, and the
 * actions that can be carried out. They are found out at run time, not compiled in. A policy
 * becomes available when what it needs is there (policy.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct td_client;
struct td_node;
struct td_gpu_view;
struct td_policy;

/* Finds out what there is: td_node.options.has. */
void td_abilities_look(struct td_node *node);

/*
 * Does so at each step, and lets the policy that was asked for decide from now on if it had to wait
 * for what it needs. One that decides goes on deciding when something is lost: it is
 * not shown what is missing, and what it plans is refused.
 */
void td_abilities_step(struct td_node *node, uint64_t now_ns);

/* TD_HAS bits of one client, once the views of its GPU are filled. */
uint32_t td_abilities_of(const struct td_node *node, const struct td_client *client);

/* Fills in what NVML and MPS tell of the GPU, for policies. */
void td_abilities_show_gpu(
	const struct td_node *node, const uint8_t *uuid, struct td_gpu_view *view);

/* "This node cannot see the steps of a job: no job tells them." Returns buf. */
char *td_abilities_sentence(uint32_t bit, char *buf, size_t len);
