/* A client behind the last one of a view: a policy that reads it goes wrong visibly. */
#pragma once

#include "policy/policy.h"

static inline void put_beyond(struct td_client_view *clients, uint32_t count, uint32_t room)
{
	if (count == room)
		return;
	clients[count] = (struct td_client_view){.id = UINT32_MAX,
		.group = UINT32_MAX,
		.class = TD_CLASS_GUARANTEED,
		.weight = 1000,
		.phase = TD_PHASE_OPEN,
		.phase_since_ns = 1,
		.wants = true,
		.wants_since_ns = 1,
		.demanded_bytes = 1ull << 40,
		.resident_bytes = 1ull << 40,
		.steps = 1,
		.step_ns = 1000000};
}
