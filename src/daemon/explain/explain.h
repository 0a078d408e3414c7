/* Lists the causes that apply to a process, for `tandem explain`, as messages of the protocol. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "daemon/record/identity.h"

struct td_msg;
struct td_node;
struct td_process;

/*
 * Calls each() with a CAUSE message for every cause that applies, the state of the process first.
 * Returns how many there were (at least one). If another user's process is in the way, the reader
 * learns only that there is one, unless he is root.
 */
uint32_t td_explain(const struct td_node *node, const struct td_process *process,
	struct td_identity reader, uint64_t now_ns,
	void (*each)(void *arg, const struct td_msg *row), void *arg);
