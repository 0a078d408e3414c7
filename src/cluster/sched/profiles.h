/*
 * Tells the brain of the leader the profiles that the nodes' agents have put into the state under
 * profile/NODE/FILE. The figures of a program are those of the first node, by name, that has them
 * for the kind of GPU; the predictor of a kind of GPU is of one node alone.
 */
#pragma once

#include "cluster/brain/brain.h"
#include "cluster/state/mirror.h"

struct td_profile_set;

struct td_shared_profiles {
	struct td_mirror mirror;
	bool has_changed;
	struct td_profile_set *set; /* what the brain was told; another brain knows nothing yet */
};

/* The state must live longer. Returns 0, -EINVAL or -ENOMEM. */
int td_shared_profiles_init(struct td_shared_profiles *profiles, struct td_state *state);
void td_shared_profiles_deinit(struct td_shared_profiles *profiles);
/* The next two work as td_records_turn() and td_records_look() do. */
uint64_t td_shared_profiles_turn(struct td_shared_profiles *profiles, uint64_t now_ns);
void td_shared_profiles_look(void *profiles, struct td_brain *brain, uint64_t now_ns);
