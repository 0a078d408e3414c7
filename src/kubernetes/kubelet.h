/*
 * Tells the kubelet that the plugin is there: Register over kubelet.sock, again until it succeeds,
 * again after each start of a kubelet, which forgets its plugins, and again when the kubelet does
 * not follow the list of GPUs: a ListAndWatch that ended is not called anew by itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kubernetes/grpc.h"

struct td_kubelet {
	char path[108]; /* the path of kubelet.sock */
	const char *endpoint, *resource;
	struct td_grpc *call; /* the registration in progress; NULL: none */
	bool is_registered, has_answer;
	uint64_t retry_ns;      /* when to try again */
	uint64_t unwatched_ns;  /* registered, and since when the list is not followed; 0: it is */
	uint64_t registrations; /* that succeeded */
	char why[TD_GRPC_TEXT]; /* the last failure, which is logged once; "": none */
};

/* dir is the folder of kubelet.sock. Returns 0, or -ENAMETOOLONG. */
int td_kubelet_init(
	struct td_kubelet *kubelet, const char *dir, const char *endpoint, const char *resource);
void td_kubelet_deinit(struct td_kubelet *kubelet);

/* Registers at once, since a new kubelet has made its socket. */
void td_kubelet_restarted(struct td_kubelet *kubelet);

/*
 * Goes on. is_watched: a ListAndWatch is open. Returns when it is to be called again at the latest;
 * UINT64_MAX: when that changes.
 */
uint64_t td_kubelet_turn(struct td_kubelet *kubelet, bool is_watched, uint64_t now_ns);
