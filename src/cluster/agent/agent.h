/*
 * The agent of a node, without its program around: rounds of the daemon in, the node's record in
 * the state out; assignments in the state in, files out.
 *
 *   tandemd --rounds--> agent --node/NAME, under a lease--> state
 *                             <--------assign/JOB---------
 *           <--class=guaranteed--   of a guest that was upgraded
 *
 * The record is written when it differs (td_record_differs()), at most once a second, and every
 * refresh_ns all the same. While the daemon is away the record says so, and no GPU accepts.
 */
#pragma once

#include "cluster/agent/assign.h"
#include "cluster/agent/loads.h"
#include "cluster/agent/publish.h"
#include "cluster/agent/rounds.h"
#include "cluster/state/presence.h"

struct td_agent_options {
	const char *node;     /* the name of the node */
	const char *socket;   /* the daemon's */
	const char *prefix;   /* of all keys, such as "/tandem/v1/" */
	const char *folder;   /* for assignments; NULL: none */
	const char *profiles; /* a folder; NULL: none are published */
	uint32_t lease_s;
	uint64_t refresh_ns;
};

struct td_agent {
	struct td_agent_options options;
	struct td_state *state;
	struct td_rounds rounds;
	struct td_loads loads;
	struct td_presence presence;
	struct td_assign assign;
	struct td_publish publish;
	struct td_record now, written;
	uint64_t begun_ns;   /* of the first turn */
	uint64_t written_ns; /* of the last write; 0: none */
	uint64_t try_ns;     /* not to write before this */
	int trouble;         /* the last result of the state; 0: all is well */
	uint64_t writes;     /* how many there were */
	uint64_t upgrades;   /* jobs whose class it has set */
};

/* The state and the texts must live longer. Returns 0 or -errno; errors of the folder, too. */
int td_agent_init(
	struct td_agent *agent, const struct td_agent_options *options, struct td_state *state);
/* Deletes the record, so that nobody counts on the node any more. */
void td_agent_deinit(struct td_agent *agent);

/* Does what is due. Returns when to call it again at the latest. */
uint64_t td_agent_turn(struct td_agent *agent, uint64_t now_ns);

/* Whether the name can be part of a key and of a file's name. */
bool td_agent_is_name(const char *name);
