/*
 * Evicts besteffort jobs, the newest first, while the machine is short of memory (model/psi.h,
 * MuxFlow 4.4). The option memory.pressure says from when; 0% is never.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/model/psi.h"

struct td_node;

struct td_pressure_watch {
	const char *path; /* of the kernel's figures */
	struct td_pressure pressure;
	uint64_t look_ns;
	bool complained;
};

void td_pressure_watch_init(struct td_pressure_watch *watch);

/* Returns when to be called again, UINT64_MAX: there is nothing to look at. */
uint64_t td_pressure_watch_turn(
	struct td_pressure_watch *watch, struct td_node *node, uint64_t now_ns);
