/*
 * Reads what an API server of Kubernetes says: lists, events of a watch, pods, nodes, leases. Pure.
 *
 * Unknown fields are ignored, so newer servers can be read. Whoever may make a pod decides about
 * most of these bytes: an object that cannot be read is left out, and the others are read.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/brain/brain.h"
#include "kubernetes/sched/annotations.h"

#define TD_KUBE_PER_GPU 100u /* of the resource for each GPU */
#define TD_KUBE_NAME    254u /* bytes of a name with its NUL */
#define TD_KUBE_WHY     192u
#define TD_KUBE_GPUS    16u /* of a node */

/* Amounts that a pod asks of its node, or that a node has for pods. */
struct td_kube_amounts {
	uint64_t slices; /* hundredths of GPUs */
	uint64_t cpu_milli, bytes, pods;
};

struct td_kube_names {
	const char *resource, *scheduler;
};

struct td_kube_pod {
	char uid[TD_NAME_MAX], space[TD_NAME_MAX], name[TD_KUBE_NAME];
	char node[TD_KUBE_NAME];   /* "": it is not bound */
	char owner[TD_NAME_MAX];   /* the UID of its controller, which makes it again; "": none */
	char problem[TD_KUBE_WHY]; /* why it can never be placed; "": it can */
	struct td_kube_amounts asks;
	bool is_ours; /* its scheduler is this one, and it asks for slices */
	bool is_over, is_leaving, is_gated;
	bool is_guaranteed, is_automatic;
	/* The placement that a scheduler has written. */
	bool is_placed, is_guest;
	uint64_t epoch;
	uint32_t gpu[TD_KUBE_GPUS], gpus;
	char gang[TD_NAME_MAX]; /* of its namespace; "": it is placed alone */
	uint32_t gang_size;
	/*
	 * The pod's demands on a node, freed with it; NULL: none. `demands` has all of them as a
	 * text, which is equal for pods with equal demands.
	 */
	json_t *selector, *terms, *tolerations;
	char *demands;
};

struct td_kube_node {
	char name[TD_KUBE_NAME];
	uint32_t gpus; /* with those that are broken */
	bool is_open;  /* ready, schedulable, and no GPU is broken */
	struct td_kube_amounts has;
	json_t *labels, *taints; /* owned */
};

struct td_kube_lease {
	char holder[TD_KUBE_NAME], version[TD_NAME_MAX];
	uint64_t duration_s, transitions;
};

enum td_kube_event_type {
	TD_KUBE_ADDED,
	TD_KUBE_MODIFIED,
	TD_KUBE_DELETED,
	TD_KUBE_BOOKMARK,
	TD_KUBE_ERROR,
};

struct td_kube_event {
	json_t *root; /* owned */
	enum td_kube_event_type type;
	const json_t *object;
	char version[TD_NAME_MAX];
	uint64_t code; /* of an ERROR; 410: list again */
};

struct td_kube_list {
	json_t *root; /* owned */
	const json_t *items;
	char version[TD_NAME_MAX];
	const char *more; /* what asks for the next page; NULL: this is the last one */
};

/*
 * Reads a count such as "100", "1k", "1500m" or "2e3", in thousandths: rounded up, and at most
 * UINT64_MAX. Returns whether it is one.
 */
bool td_kube_quantity(const char *text, uint64_t *ret_milli);

/* Return 0, or -EBADMSG. What is written is freed by the _deinit of its kind. */
int td_kube_event_read(const char *bytes, size_t length, struct td_kube_event *ret);
void td_kube_event_deinit(struct td_kube_event *event);
int td_kube_list_read(const char *bytes, size_t length, struct td_kube_list *ret);
void td_kube_list_deinit(struct td_kube_list *list);
int td_kube_lease_read(const char *bytes, size_t length, struct td_kube_lease *ret);
int td_kube_pod_read(
	const json_t *object, const struct td_kube_names *names, struct td_kube_pod *ret);
void td_kube_pod_deinit(struct td_kube_pod *pod);
int td_kube_node_read(const json_t *object, const char *resource, struct td_kube_node *ret);
void td_kube_node_deinit(struct td_kube_node *node);
/* Writes the message of a refusal, which is printable afterwards, or "". */
void td_kube_message(const char *bytes, size_t length, char *ret, size_t len);
/* Whether the group's answer to /apis/policy has this version. */
bool td_kube_has_version(const char *bytes, size_t length, const char *version);

/*
 * Whether the node's labels and taints allow the pod there. If not, writes the reason, at most
 * TD_KUBE_WHY bytes.
 */
bool td_kube_allows(const struct td_kube_node *node, const struct td_kube_pod *pod, char *ret_why);
