/*
 * For the device plugin: the GPUs on which the scheduler has placed the container that the kubelet
 * is about to start.
 *
 * The kubelet asks for a number of slices and does not say for which pod. So this asks the API
 * server for the pods of the node that are bound with tandem.dev/gpu-index and have not begun, and
 * takes the first one with a container of that number which it has not been asked for before. Two
 * containers with the same number may be confused: then each has the other's GPU, and when one of
 * them ends the scheduler takes the wrong GPU for free. The next container is then on another GPU
 * than was chosen, or has slices of several, of which tandemd chooses. The kubelet's PodResources
 * cannot be asked here, because it waits for the same lock as the kubelet's question.
 */
#pragma once

#include "kubernetes/sched/api.h"
#include "kubernetes/sched/read.h"

struct td_kube_placed;

/* The API and the texts must live longer. Returns NULL without memory. */
struct td_kube_placed *td_kube_placed_new(
	struct td_kube_api *api, const char *node, const char *resource);
void td_kube_placed_free(struct td_kube_placed *placed);

/*
 * Writes the GPUs of the next container with so many slices, by their numbers on the node, at most
 * TD_KUBE_GPUS. Returns their number; 0: there is no such container, or no answer came.
 */
uint32_t td_kube_placed_next(struct td_kube_placed *placed, uint64_t slices, uint32_t *ret_gpus);
/* Does what td_kube_placed_next() does, with an answer of the API server that has come already. */
uint32_t td_kube_placed_choose(struct td_kube_placed *placed, const struct td_kube_list *list,
	uint64_t slices, uint32_t *ret_gpus);
