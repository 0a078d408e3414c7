/*
 * An engine starts and stops jobs: Slurm, or the local one of the tests. It tells the brain what is
 * so, and carries out the brain's orders.
 *
 * Orders may come again, or late. An engine that has placed (job, epoch) already does nothing, and
 * nothing either for a placement that is over.
 */
#pragma once

#include <stdint.h>

#include "cluster/brain/brain.h"

struct td_engine;

struct td_placement {
	const char *id;
	uint64_t epoch, revision;
	bool guest;
	const struct td_brain_place *places;
	uint32_t count;
};

/*
 * All return 0; -EAGAIN: not now, the order will be repeated; -EOPNOTSUPP: never, for this job; or
 * another -errno.
 */
struct td_engine_kind {
	const char *name;
	void (*free)(struct td_engine *engine);
	/*
	 * Tells the brain all nodes and jobs as they are now: who waits, who runs, who has ended.
	 * Those that run are adopted where the brain does not know them.
	 */
	int (*submitted)(struct td_engine *engine, struct td_brain *brain, uint64_t now_ns);
	int (*place)(struct td_engine *engine, const struct td_placement *placement);
	int (*upgrade)(struct td_engine *engine, const char *id, uint64_t epoch);
	int (*requeue)(struct td_engine *engine, const char *id, uint64_t epoch, const char *why);
	int (*stop)(struct td_engine *engine, const char *id, uint64_t epoch);
	/* Shows people why a job waits. */
	int (*explain)(struct td_engine *engine, const char *id, const char *why);
	/* Returns details of the last failure, or "". */
	const char *(*why)(const struct td_engine *engine);
};

/* Each engine's struct begins with this. */
struct td_engine {
	const struct td_engine_kind *kind;
};
