/* This file implements placed.h. */
#include "kubernetes/sched/placed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"

#define GIVEN 1024u /* containers that are remembered; a node has at most some hundreds */

struct td_kube_placed {
	struct td_kube_api *api;
	struct td_text answer;
	struct td_kube_names names;
	const char *node;
	uint64_t given[GIVEN]; /* hashes of pod and container, the oldest one is overwritten */
	uint32_t next;
};

struct td_kube_placed *td_kube_placed_new(
	struct td_kube_api *api, const char *node, const char *resource)
{
	struct td_kube_placed *placed = calloc(1, sizeof(*placed));

	if (!placed)
		return NULL;
	placed->api = api;
	placed->node = node;
	placed->names = (struct td_kube_names){.resource = resource, .scheduler = ""};
	return placed;
}

void td_kube_placed_free(struct td_kube_placed *placed)
{
	if (!placed)
		return;
	td_text_deinit(&placed->answer);
	free(placed);
}

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool was_given(const struct td_kube_placed *placed, uint64_t hash)
{
	for (uint32_t k = 0; k < GIVEN; k++)
		if (placed->given[k] == hash)
			return true;
	return false;
}

static bool asks_for(const struct td_kube_placed *placed, const json_t *container, uint64_t slices)
{
	const json_t *limits = json_object_get(json_object_get(container, "resources"), "limits");
	uint64_t milli;

	return td_kube_quantity(text_at(limits, placed->names.resource), &milli) &&
	       milli == slices * 1000;
}

/*
 * Returns whether the pod has such a container, which was not given before unless `again`, and
 * notes it.
 */
static bool take_container(struct td_kube_placed *placed, const json_t *object, const char *kind,
	uint64_t slices, bool again)
{
	const json_t *container, *spec = json_object_get(object, "spec");
	const char *uid = text_at(json_object_get(object, "metadata"), "uid");
	size_t k;

	json_array_foreach(json_object_get(spec, kind), k, container)
	{
		uint64_t hash = td_hash_str(uid) * 31 + td_hash_str(text_at(container, "name"));

		if (!asks_for(placed, container, slices) || (!again && was_given(placed, hash)))
			continue;
		placed->given[placed->next++ % GIVEN] = hash;
		return true;
	}
	return false;
}

/* Whether it was bound by the scheduler, and the kubelet has not begun with it. */
static bool is_to_begin(const json_t *object, const struct td_kube_pod *pod)
{
	const json_t *status = json_object_get(object, "status");

	return pod->is_placed && !pod->is_over && !*text_at(status, "startTime");
}

static uint32_t choose(struct td_kube_placed *placed, const struct td_kube_list *list,
	uint64_t slices, bool again, uint32_t *ret_gpus)
{
	const json_t *object;
	size_t k;

	json_array_foreach(list->items, k, object)
	{
		struct td_kube_pod pod;

		if (td_kube_pod_read(object, &placed->names, &pod))
			continue;
		td_kube_pod_deinit(&pod);
		if (strcmp(pod.node, placed->node) || !is_to_begin(object, &pod) ||
			(!take_container(placed, object, "initContainers", slices, again) &&
				!take_container(placed, object, "containers", slices, again)))
			continue;
		memcpy(ret_gpus, pod.gpu, pod.gpus * sizeof(*ret_gpus));
		return pod.gpus;
	}
	return 0;
}

uint32_t td_kube_placed_choose(struct td_kube_placed *placed, const struct td_kube_list *list,
	uint64_t slices, uint32_t *ret_gpus)
{
	uint32_t count = choose(placed, list, slices, false, ret_gpus);

	/* A kubelet whose start of a container failed asks for it again. */
	return count ? count : choose(placed, list, slices, true, ret_gpus);
}

uint32_t td_kube_placed_next(struct td_kube_placed *placed, uint64_t slices, uint32_t *ret_gpus)
{
	char path[TD_KUBE_PATH];
	struct td_kube_list list;
	uint32_t count;
	int status;

	snprintf(path, sizeof(path), "/api/v1/pods?fieldSelector=spec.nodeName%%3D%.253s",
		placed->node);
	status = td_kube_api_send(placed->api, "GET", path, NULL, NULL, &placed->answer);
	if (status != 200) {
		td_kube_api_refused(placed->api, status, &placed->answer);
		td_log(TD_LOG_WARN,
			"slices=%" PRIu64 " given without knowing where they were placed: %s",
			slices, td_kube_api_why(placed->api));
		return 0;
	}
	if (td_kube_list_read(placed->answer.text, placed->answer.length, &list))
		return 0;
	count = td_kube_placed_choose(placed, &list, slices, ret_gpus);
	td_kube_list_deinit(&list);
	return count;
}
