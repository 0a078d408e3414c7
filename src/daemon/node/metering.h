/*
 * The meter of the programs (model/measure/activity.h): whether it is on, and its figures for
 * policies and people.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_client;
struct td_node;

/* Returns whether programs without a duty and a window are measured too, by the option `meter`. */
bool td_metering_is_wanted(const struct td_node *node);

/* Reads the meter of a client, if it is measured. */
void td_metering_read(const struct td_node *node, struct td_client *client, uint64_t now_ns);

/*
 * Takes the counters of a client that comes to a GPU by a move as already read. Its program may
 * have been there before: the page still has the time from then, which was charged to another
 * client.
 */
void td_metering_arrive(struct td_client *client);

/*
 * Contexts take turns on a GPU, so together they have all of its time at most. Beside others the
 * meter may take their turns for a program's own; then the rates of all are less in proportion.
 * Where MPS is on, kernels of several programs run side by side.
 *
 * Adds what the client's meter says to the sum of its GPU, which begins at 0 in each step.
 */
void td_metering_add(struct td_node *node, const struct td_client *client);

/* Returns a rate of the client, reduced in proportion. */
uint32_t td_metering_ppm(const struct td_node *node, const struct td_client *client, uint32_t ppm);

/*
 * Like td_metering_ppm(), for the view of a policy, where 0 means "unknown": a known rate is at
 * least 1.
 */
uint32_t td_metering_shown_ppm(
	const struct td_node *node, const struct td_client *client, uint32_t ppm);

/*
 * Computes the SM activity of a GPU as the sum of its clients'. Returns false if a client that runs
 * is not measured, or if the GPU has no clients.
 */
bool td_metering_of_gpu(const struct td_node *node, uint32_t gpu, uint32_t *ret_ppm);
