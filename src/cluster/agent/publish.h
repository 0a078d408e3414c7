/*
 * The profiles of a node in the state: what its users have measured with `tandem profile` is under
 * profile/NODE/FILE, so that schedulers know the programs on all nodes. The files are those of the
 * directory that tandemd has as `profiles`:
 *
 *   muxflow.speeds   programs alone, and the predictor of their speeds (profile/speed_file.h)
 *   NAME.profile     the latency curves of a service (profile/service.h)
 *   NAME.layers      the layers of a program's network, as `tandem layers` prints them
 *
 * They have no lease: what was measured stays true when the node is away. A file that is gone is
 * deleted there; one that cannot be read leaves the state as it is.
 */
#pragma once

#include <dirent.h>

#include "cluster/node/profile_key.h"
#include "cluster/state/state.h"

#define TD_PUBLISH_FILES 512u
#define TD_PUBLISH_BYTES (8u << 20) /* of all files of a node: all nodes share the state */

struct td_published {
	char name[TD_PROFILE_FILE_MAX];
	uint64_t hash; /* of what the state has; 0: it is not known */
	bool is_there;
};

struct td_publish {
	struct td_state *state;
	char prefix[TD_STATE_KEY_MAX];
	const char *folder; /* NULL: nothing is published */
	struct td_published *file;
	uint32_t count;
	uint64_t bytes, bytes_max; /* of the files that this look has seen; of all */
	uint64_t next_ns, read_ns; /* when the folder is looked at, and the state is read */
	char trouble[192];         /* the last file that could not be published, and why; "" */
};

/* The texts and the state must live longer. Returns 0, -EINVAL: a key too long; or -ENOMEM. */
int td_publish_init(struct td_publish *publish, struct td_state *state, const char *prefix,
	const char *node, const char *folder);
void td_publish_deinit(struct td_publish *publish);
/* Publishes what has changed, now and then. Returns 0, or why the state did not take it. */
int td_publish_turn(struct td_publish *publish, uint64_t now_ns, uint64_t *ret_wakeup_ns);
