/*
 * Evicts besteffort jobs, the newest first, while the machine is short of memory
 * (model/machine/psi.h, MuxFlow 4.4). The option memory.pressure is the bound; 0% means never.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/model/machine/psi.h"

struct td_node;

struct td_pressure_watch {
	const char *path; /* the file with the kernel's figures */
	struct td_pressure pressure;
	uint64_t look_ns;
	bool complained;
};

void td_pressure_watch_init(struct td_pressure_watch *watch);

/* Returns when to call it again; UINT64_MAX if there is nothing to watch. */
uint64_t td_pressure_watch_turn(
	struct td_pressure_watch *watch, struct td_node *node, uint64_t now_ns);
