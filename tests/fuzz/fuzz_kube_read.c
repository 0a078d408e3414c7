/* Arbitrary answers of an API server of Kubernetes. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "kubernetes/sched/engine/cache.h"
#include "kubernetes/sched/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct td_kube_names names = {"tandem.dev/gpu", "tandem"};

/* Whatever is written of a pod is JSON. */
static void check_body(struct td_text *body)
{
	json_t *root = json_loadb(body->text, body->length, JSON_ALLOW_NUL, NULL);

	assert(root);
	json_decref(root);
	td_text_clear(body);
}

static void check_pod(const struct td_kube_pod *pod)
{
	static struct td_text body;
	const struct td_brain_place place = {"node", 1};
	const struct td_placement placement = {.id = "x", .epoch = 1, .places = &place, .count = 1};
	const struct td_kube_said said = {"r", pod->problem, "p", "i", true, 1};

	assert(*pod->uid && pod->gpus <= TD_KUBE_GPUS);
	for (uint32_t k = 0; k < pod->gpus; k++)
		assert(pod->gpu[k] < TD_KUBE_GPUS);
	assert(!pod->is_placed || pod->gpus);
	assert(pod->gang_size <= TD_GANG_MAX);
	assert(*pod->problem || !*pod->gang ||
		(pod->gang_size && pod->asks.slices <= TD_KUBE_PER_GPU));
	assert(*pod->problem || pod->asks.slices <= (uint64_t)TD_KUBE_GPUS * TD_KUBE_PER_GPU);
	td_kube_write_binding(&body, pod, &placement);
	check_body(&body);
	td_kube_write_eviction(&body, pod, "v1");
	check_body(&body);
	td_kube_write_event(&body, pod, &said);
	check_body(&body);
}

static void take(const json_t *object)
{
	char why[TD_KUBE_WHY];
	struct td_kube_node node = {0};
	struct td_kube_pod pod = {0};

	if (!td_kube_node_read(object, names.resource, &node))
		assert(*node.name && node.gpus <= TD_KUBE_GPUS);
	if (!td_kube_pod_read(object, &names, &pod))
		check_pod(&pod);
	assert(td_kube_allows(&node, &pod, why) == !*why);
	td_kube_pod_deinit(&pod);
	td_kube_node_deinit(&node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct td_kube_event event;
	struct td_kube_lease lease;
	struct td_kube_list list;
	char text[256];
	uint64_t milli;

	if (!td_kube_event_read(bytes, size, &event)) {
		assert(event.type <= TD_KUBE_ERROR);
		take(event.object);
		td_kube_event_deinit(&event);
	}
	if (!td_kube_list_read(bytes, size, &list)) {
		take(json_array_get(list.items, 0));
		td_kube_list_deinit(&list);
	}
	if (!td_kube_lease_read(bytes, size, &lease))
		assert(*lease.version);
	td_kube_message(bytes, size, text, sizeof(text));
	(void)td_kube_has_version(bytes, size, "v1");
	if (size && size < sizeof(text)) {
		memcpy(text, bytes, size);
		text[size] = 0;
		(void)td_kube_quantity(text, &milli);
	}
	return 0;
}
