/*
 * The meter of the programs (model/activity.h): whether it is on, and what it says to policies and
 * people.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_client;
struct td_node;

/* Are programs measured that have neither a duty nor a window? By the option `meter`. */
bool td_metering_is_wanted(const struct td_node *node);

/* Reads the meter of a client, if it is measured. */
void td_metering_read(const struct td_node *node, struct td_client *client, uint64_t now_ns);

/*
 * The client comes to a GPU by a move. Its program may have been there before: the page still has
 * the time of then, which another client was charged for.
 */
void td_metering_arrive(const struct td_node *node, struct td_client *client);

/*
 * Contexts take turns on a GPU, so together they have all of its time at most. Beside others the
 * meter may take their turns for a program's own; then the rates of all are less in proportion.
 * Where MPS is on, kernels of several programs run side by side.
 *
 * Sums up what the meters say. Called when all have been read.
 */
void td_metering_gather(struct td_node *node);

/* A rate of the client, in proportion. */
uint32_t td_metering_ppm(const struct td_node *node, const struct td_client *client, uint32_t ppm);

/* The same for a policy's view, where 0 is "not known": at least 1 once it is known. */
uint32_t td_metering_shown_ppm(
	const struct td_node *node, const struct td_client *client, uint32_t ppm);

/*
 * The SM activity of a GPU: the sum of its clients'. Returns false where a client that runs is not
 * measured, or nobody is there.
 */
bool td_metering_of_gpu(const struct td_node *node, uint32_t gpu, uint32_t *ret_ppm);
