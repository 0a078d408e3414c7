/*
 * Registers the plugin with the kubelet: it calls Register over kubelet.sock until that succeeds,
 * and again after each start of a kubelet, which forgets its plugins. It also registers again when
 * no ListAndWatch is open, since the kubelet does not repeat an ended call by itself.
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
	uint64_t retry_ns; /* when to try again */
	/* since when it is registered but no ListAndWatch is open; 0: that is not so */
	uint64_t unwatched_ns;
	uint64_t registrations; /* the number of successful registrations */
	char why[TD_GRPC_TEXT]; /* the last failure, which was logged; "": none */
};

/* dir is the folder of kubelet.sock. Returns 0, or -ENAMETOOLONG. */
int td_kubelet_init(
	struct td_kubelet *kubelet, const char *dir, const char *endpoint, const char *resource);
void td_kubelet_deinit(struct td_kubelet *kubelet);

/* Registers at once, since a new kubelet has made its socket. */
void td_kubelet_restarted(struct td_kubelet *kubelet);

/*
 * Makes progress. is_watched: a ListAndWatch is open. Returns when to call it again at the latest;
 * UINT64_MAX: when is_watched changes.
 */
uint64_t td_kubelet_turn(struct td_kubelet *kubelet, bool is_watched, uint64_t now_ns);
