/*
 * SHARE: a running program gets another share of its GPU's SMs. Its act passes these stages (enum
 * td_migration_stage; there is no ROOM, since all memory stays):
 *
 *   PREPARE   MOVE PREPARE with the share was sent; the program makes its twins (proto/words.h)
 *   CLOSE     its gate closes, whatever the plan says
 *   GO        MOVE GO was sent; the program switches to its twins
 *
 * If the library refuses, and the job's supervisor can start a second instance, the action becomes
 * a START_SHADOW: the second instance has the new share.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_act;
struct td_client;
struct td_msg_moved;
struct td_node;
struct td_process;

/*
 * Returns why the program's share cannot change while it runs, as part of a sentence; NULL: it can.
 */
const char *td_reshare_obstacle(const struct td_process *process);

/*
 * Returns whether a policy may plan such a change of the client now. It may not while a refusal is
 * remembered.
 */
bool td_reshare_is_possible(const struct td_node *node, const struct td_client *client);

/* Begins to change the share of the act's client to act->sm_share_ppm, or refuses it. */
void td_reshare_begin(struct td_node *node, struct td_act *act, uint64_t now_ns);
/* Lets the change progress. */
void td_reshare_step(struct td_node *node, struct td_act *act, uint64_t now_ns);
/* Takes MOVED of a program whose share changes. act: NULL if it was given up before. */
void td_reshare_message(struct td_node *node, struct td_process *process, struct td_act *act,
	const struct td_msg_moved *msg, uint64_t now_ns);
