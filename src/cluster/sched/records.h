/*
 * The records of the nodes' agents (node/NAME in the state), told to the brain of the leader: which
 * GPUs accept guests, which are broken, how busy they were over ten seconds, and whether the node's
 * daemon answers. A node without a record is judged by nobody, and its GPUs are open.
 *
 * A GPU whose memory is all but asked for accepts no guests either.
 */
#pragma once

#include "cluster/brain/brain.h"
#include "cluster/node/record.h"
#include "cluster/state/mirror.h"

struct td_records {
	struct td_mirror mirror;
	struct td_brain *brain; /* the last one that was told; another one knows nothing yet */
	bool has_changed;
	struct td_record *record;
	uint64_t told_ns;
};

/* The state must live longer. Returns 0, -EINVAL or -ENOMEM. */
int td_records_init(struct td_records *records, struct td_state *state);
void td_records_deinit(struct td_records *records);
/*
 * Follows the state while this scheduler does not lead. td_state_turn() comes first. Returns when
 * to call it again at the latest.
 */
uint64_t td_records_turn(struct td_records *records, uint64_t now_ns);
/* Tells the brain what is so; of the type of td_scheduler_options.look. */
void td_records_look(void *records, struct td_brain *brain, uint64_t now_ns);
