/*
 * host.limit: how much of the host's memory all processes together may pin for bytes that have left the GPUs.
 *
 * Each process has a grant, up to which it takes by itself, and is charged for that as account.h says. One that needs more than its grant asks; where too little is left, what the others
 * were granted and do not use is called back first, and only then is it told what there is. A lowered limit takes nothing away.
 *
 * What a process has is what it says, but no more than its allocations are. Until it has heard of its bound it had none, so nobody is granted
 * anything beside one that has yet to say what it took (docs/decisions/0008).
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

/* Before plans are told: what has to leave needs a place. Returns when to be called again. */
uint64_t td_host_step(struct td_node *node, uint64_t now_ns);
