/* Shows the node to the policy, as its view: pure data, which is made anew in each step. */
#pragma once

#include "daemon/model/node.h"

/* Reads the page of each service. Returns when the next look is due, or TD_NEVER. */
uint64_t td_services_look(struct td_node *node, uint64_t now_ns);

/* Returns whether the policy may plan moves. If not, other daemons' locks need not be read. */
bool td_show_is_moving(const struct td_node *node);

/* Fills the view. Its rows lie in the node and are valid until the next call. */
void td_show_view(struct td_node *node, struct td_view *view, uint64_t now_ns);
/*
 * Brings the view of the last step up to date, if nothing but the activity and the time has
 * changed. Returns false if more has: then td_show_view() must fill it.
 */
bool td_show_again(struct td_node *node, struct td_view *view, uint64_t now_ns);

/*
 * Returns the share of the SMs that the client was started with. 0: it has no share, or MPS does
 * not run on the GPU.
 */
uint32_t td_sm_share_ppm(const struct td_node *node, const struct td_client *client);
