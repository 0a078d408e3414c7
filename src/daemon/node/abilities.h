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

/* Updates td_node.options.has. */
void td_abilities_look(struct td_node *node);

/*
 * Called in each step: updates td_node.options.has, and lets a policy that had to wait for what it
 * needs decide from now on. A policy in force stays so when an ability is lost: it is not shown the
 * missing figures, and its plans for missing actions are refused.
 */
void td_abilities_step(struct td_node *node, uint64_t now_ns);

/* Returns the TD_HAS bits of one client. The views of its GPU must be filled. */
uint32_t td_abilities_of(const struct td_node *node, const struct td_client *client);

/* Fills in the figures of NVML and MPS for the GPU, for policies. */
void td_abilities_show_gpu(
	const struct td_node *node, const uint8_t *uuid, struct td_gpu_view *view);

/*
 * Writes a sentence such as "This node cannot see the steps of a job: no job reports them."
 * Returns buf.
 */
char *td_abilities_sentence(uint32_t bit, char *buf, size_t len);
