/*
 * Fills the parts of the policies' view that are measured while programs run: the figures of
 * services and the activity of the SMs.
 */
#pragma once

#include "daemon/model/node.h"

/* Reads the page of each service. Returns when the next look is due, or TD_NEVER. */
uint64_t td_services_look(struct td_node *node, uint64_t now_ns);

/* Fills in what is known of the client in advance, and sets the flag that it is known. */
void td_show_profile(
	const struct td_node *node, struct td_client *client, struct td_client_view *view);

/* Fills in the figures of a service; does nothing if service is NULL. */
void td_show_service(const struct td_service *service, struct td_client_view *view);

/*
 * Returns the share of the SMs that the client was started with. 0: it has no share, or MPS does
 * not run on the GPU.
 */
uint32_t td_sm_share_ppm(const struct td_node *node, const struct td_client *client);

/* Fills in the SM activity of all clients and GPUs in the view. */
void td_show_activity(struct td_node *node);
