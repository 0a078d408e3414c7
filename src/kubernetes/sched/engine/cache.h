/*
 * Keeps what the API server has said: all pods that are bound or wait for this scheduler, and the
 * nodes with GPUs. Two watches feed it (watch.h).
 *
 * A pod that was sent back is made again by its controller, under another name and UID. The new pod
 * takes over the name that the brain has for the job, so its epoch and its GPU time go on. It has
 * to ask for the same in the same namespace: anybody may name any owner.
 */
#pragma once

#include "cluster/brain/name_table.h"
#include "kubernetes/sched/read.h"

#define TD_KUBE_PODS  65536u
#define TD_KUBE_NODES 1024u

struct td_kube_entry {
	struct td_kube_pod pod;
	char job[TD_NAME_MAX]; /* the brain's name for it or its gang; "": it has none any more */
	bool is_listed;        /* the list that is being read has it */
	bool is_sent_back;
	uint64_t said;     /* a hash of what its last event says */
	uint64_t evict_ns; /* a budget keeps it: it is not asked to leave again before this */
	uint32_t refusals; /* by a budget */
	uint32_t gang;     /* its gang's number and one more; 0: none yet */
};

struct td_kube_place {
	struct td_kube_node node;
	bool is_there, is_listed; /* not there: the brain has to be told yet */
	bool is_foreign; /* pods hold slices of which nobody knows on which GPUs they are */
};

/* A pod was sent back, and its controller makes another one. */
struct td_kube_back {
	char owner[TD_NAME_MAX], space[TD_NAME_MAX], job[TD_NAME_MAX];
	uint64_t slices;
	bool is_guaranteed, is_automatic;
	uint64_t until_ns; /* after this nobody comes any more */
};

#define TD_KUBE_BACKS 1024u
#define TD_KUBE_GANGS 1024u

/* The pods of a namespace with one tandem.dev/gang, which are one job of the brain (gangs.h). */
struct td_kube_gang {
	char space[TD_NAME_MAX], name[TD_NAME_MAX];
	char job[TD_NAME_MAX];       /* the UID of its first pod; "": this gang is not used */
	struct td_kube_entry *first; /* of those that count, until pods change */
	uint32_t waits, bound;       /* pods that count: without a node, and on one */
	uint32_t others;             /* pods that are leaving, or that do not count */
	bool stays;                  /* a pod that is bound would not be made again */
	bool will_stay;              /* one that waits would not be, once it is bound */
	uint64_t evict_ns;           /* a budget keeps it until then; 0: none did */
	uint64_t epoch;              /* the highest of those that are bound */
	uint64_t whole_epoch;        /* all of its pods were bound with this one */
	uint64_t until_ns;           /* pods were sent back; after this nobody comes any more */
};

struct td_kube_cache {
	struct td_kube_names names;
	struct td_name_table pods, nodes; /* by UID, by name */
	struct td_kube_entry *pod;
	uint32_t top; /* no pod has been at this index or above */
	struct td_kube_place *node;
	struct td_kube_back back[TD_KUBE_BACKS];
	uint32_t backs;
	struct td_kube_gang gang[TD_KUBE_GANGS];
	bool is_full; /* there are more pods than it can keep */
};

/* Returns 0 or -ENOMEM. */
int td_kube_cache_init(struct td_kube_cache *cache, const struct td_kube_names *names);
void td_kube_cache_deinit(struct td_kube_cache *cache);

/* For watches: an object is there (or no longer), a list begins, a list has ended. */
void td_kube_cache_pod(void *cache, const json_t *object, bool is_deleted);
void td_kube_cache_pods_begin(void *cache);
void td_kube_cache_pods_end(void *cache);
void td_kube_cache_node(void *cache, const json_t *object, bool is_deleted);
void td_kube_cache_nodes_begin(void *cache);
void td_kube_cache_nodes_end(void *cache);

/* Return NULL at an index that is free. Indices are below TD_KUBE_PODS and TD_KUBE_NODES. */
struct td_kube_entry *td_kube_cache_at(struct td_kube_cache *cache, uint32_t index);
struct td_kube_place *td_kube_cache_node_at(struct td_kube_cache *cache, uint32_t index);
/* Forgets a node that is not there. */
void td_kube_cache_drop_node(struct td_kube_cache *cache, uint32_t index);
/* Return NULL if there is no such job or node. */
struct td_kube_entry *td_kube_cache_find(struct td_kube_cache *cache, const char *job);
struct td_kube_place *td_kube_cache_find_node(struct td_kube_cache *cache, const char *name);

/*
 * Calls with the index of the last one, TD_NO_NAME at first, and returns the next pod of the job,
 * or NULL. Most jobs have one pod; a gang has several.
 */
struct td_kube_entry *td_kube_cache_next(
	struct td_kube_cache *cache, const char *job, uint32_t *index);

/* Takes a binding back that nobody has sent. */
void td_kube_cache_unbind(struct td_kube_entry *entry);
/* The pod goes, and its controller makes another one by until_ns. */
void td_kube_cache_sent_back(
	struct td_kube_cache *cache, struct td_kube_entry *entry, uint64_t until_ns);
/* Forgets who has not come again. */
void td_kube_cache_expire(struct td_kube_cache *cache, uint64_t now_ns);
/* Notes which nodes have slices in hands of whom this scheduler knows nothing. */
void td_kube_cache_mark_foreign(struct td_kube_cache *cache);

/*
 * Whether the node has room for the pod on these GPUs, beside all pods that are there, also those
 * that are leaving. If not, writes the reason, at most TD_KUBE_WHY bytes.
 */
bool td_kube_cache_has_room(struct td_kube_cache *cache, const struct td_kube_place *node,
	const struct td_kube_pod *pod, const uint32_t *gpus, uint32_t count, char *ret_why);
