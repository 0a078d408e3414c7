/*
 * host.limit: how much of the host's memory all processes together may pin or map for bytes that
 * have left the GPUs.
 *
 * Each process may take a granted amount by itself, and is charged for it as account.h says. A
 * process that needs more asks. Where too little is left, the daemon first calls back bytes that
 * others were granted and do not use. Then it tells the process what there is. A lowered limit
 * takes nothing away.
 *
 * A process is believed to have what it reports, but no more than its allocations. It had no bound
 * before it heard of its first one. So nobody is granted anything while a process has yet to say
 * what it took (docs/decisions/0008).
 *
 * The memory that the driver takes to the host for a checkpoint (execute/parking.h) is charged,
 * too. A checkpoint that does not fit is refused.
 */
#pragma once

#include <stdint.h>

struct td_host_part;
struct td_msg_ask;
struct td_msg_used;
struct td_node;
struct td_process;

void td_host_init(struct td_host_part *part);
void td_host_used(struct td_process *process, const struct td_msg_used *msg);
void td_host_ask(struct td_process *process, const struct td_msg_ask *msg, uint64_t now_ns);

/*
 * Shares host memory out. Called before plans are told, since memory that has to leave needs a
 * place. Returns when to call it again.
 */
uint64_t td_host_step(struct td_node *node, uint64_t now_ns);

/* Returns the bytes that host.limit leaves for a checkpoint; TD_UNBOUNDED: there is no limit. */
uint64_t td_host_left(const struct td_node *node);
