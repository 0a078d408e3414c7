/* This file implements read.h, except td_kube_allows(). */
#include "kubernetes/sched/read.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

/* --- texts and numbers --- */

/* Users may write a NUL into texts; it ends them here. */
static json_t *parse(const char *bytes, size_t length)
{
	json_error_t error;
	json_t *root = json_loadb(bytes, length, JSON_ALLOW_NUL, &error);

	if (json_is_object(root))
		return root;
	json_decref(root);
	return NULL;
}

static const char *text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Copies a text that has to fit. Returns whether it does. */
static bool copy(char *to, size_t size, const char *text)
{
	size_t length = strlen(text);

	if (length >= size)
		return false;
	memcpy(to, text, length + 1);
	return true;
}

static uint64_t number_at(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static bool times(uint64_t *value, uint64_t factor)
{
	return !__builtin_mul_overflow(*value, factor, value);
}

/* Reads an exponent of ten: "e3", "E-2". Returns whether it is one. */
static bool read_exponent(const char *text, int *ret)
{
	char *end;
	long value;

	if (!isdigit((unsigned char)text[1]) && (!text[1] || !strchr("+-", text[1])))
		return false;
	value = strtol(text + 1, &end, 10);
	if (end == text + 1 || *end || value < -30 || value > 30)
		return false;
	*ret = (int)value;
	return true;
}

/* Reads what is behind the digits: a power of ten, or of 1024 in *ret_binary. */
static bool read_suffix(const char *text, int *ret_ten, int *ret_binary)
{
	static const char binary[] = "KMGTPE";
	static const struct {
		char letter;
		int ten;
	} decimal[] = {{'n', -9}, {'u', -6}, {'m', -3}, {'k', 3}, {'M', 6}, {'G', 9}, {'T', 12},
		{'P', 15}, {'E', 18}};

	*ret_ten = *ret_binary = 0;
	if (!*text)
		return true;
	if (text[1] == 'i' && !text[2] && strchr(binary, *text)) {
		*ret_binary = (int)(strchr(binary, *text) - binary) + 1;
		return true;
	}
	for (size_t k = 0; !text[1] && k < sizeof(decimal) / sizeof(*decimal); k++)
		if (decimal[k].letter == *text) {
			*ret_ten = decimal[k].ten;
			return true;
		}
	return (*text == 'e' || *text == 'E') && read_exponent(text, ret_ten);
}

bool td_kube_quantity(const char *text, uint64_t *ret_milli)
{
	uint64_t value = 0;
	int ten, binary, scale = 3, digits = 0;
	bool is_fraction = false, fits = true;
	const char *at = text + (*text == '+');

	for (; isdigit((unsigned char)*at) || (*at == '.' && !is_fraction); at++) {
		if (*at == '.') {
			is_fraction = true;
			continue;
		}
		digits++;
		if (is_fraction && scale <= -15)
			continue; /* finer than anybody counts */
		fits = fits && times(&value, 10) && value <= UINT64_MAX - 9;
		value += fits ? (uint64_t)(*at - '0') : 0;
		scale -= is_fraction;
	}
	if (!digits || !read_suffix(at, &ten, &binary))
		return false;
	for (int k = 0; k < binary; k++)
		fits = fits && times(&value, 1024);
	for (scale += ten; scale > 0; scale--)
		fits = fits && times(&value, 10);
	for (; fits && scale < 0; scale++)
		value = value / 10 + (value % 10 != 0);
	*ret_milli = fits ? value : UINT64_MAX;
	return true;
}

/* A quantity is a text; a server of ours may be asked with a number. */
static uint64_t milli_at(const json_t *object, const char *key)
{
	const json_t *field = json_object_get(object, key);
	uint64_t milli = 0;

	if (json_is_integer(field) && json_integer_value(field) > 0)
		return (uint64_t)json_integer_value(field) > UINT64_MAX / 1000
			       ? UINT64_MAX
			       : (uint64_t)json_integer_value(field) * 1000;
	return td_kube_quantity(text_at(object, key), &milli) ? milli : 0;
}

static uint64_t whole_at(const json_t *object, const char *key)
{
	uint64_t milli = milli_at(object, key);

	return milli / 1000 + (milli % 1000 != 0);
}

static struct td_kube_amounts amounts_at(const json_t *object, const char *resource)
{
	return (struct td_kube_amounts){.slices = whole_at(object, resource),
		.cpu_milli = milli_at(object, "cpu"),
		.bytes = whole_at(object, "memory"),
		.pods = whole_at(object, "pods")};
}

/* --- what pods ask for --- */

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct td_kube_amounts join(
	struct td_kube_amounts a, struct td_kube_amounts b, uint64_t (*both)(uint64_t, uint64_t))
{
	return (struct td_kube_amounts){.slices = both(a.slices, b.slices),
		.cpu_milli = both(a.cpu_milli, b.cpu_milli),
		.bytes = both(a.bytes, b.bytes)};
}

static struct td_kube_amounts asks_of(const json_t *container, const char *resource)
{
	const json_t *resources = json_object_get(container, "resources");
	struct td_kube_amounts asks = amounts_at(json_object_get(resources, "requests"), resource);
	uint64_t limit = whole_at(json_object_get(resources, "limits"), resource);

	/* An extended resource's limit is its request. */
	asks.slices = asks.slices ? asks.slices : limit;
	return asks;
}

/* Parts of GPUs add up to at most one GPU; whole GPUs stand alone. */
static void check_slices(struct td_kube_pod *pod, bool has_part)
{
	uint64_t slices = pod->asks.slices;

	if (has_part && slices > TD_KUBE_PER_GPU)
		snprintf(pod->problem, sizeof(pod->problem),
			"its containers ask for %" PRIu64
			" hundredths of GPUs: expected parts of one GPU, up to %u, or whole GPUs",
			slices, TD_KUBE_PER_GPU);
	else if (slices > (uint64_t)TD_KUBE_GPUS * TD_KUBE_PER_GPU)
		snprintf(pod->problem, sizeof(pod->problem),
			"it asks for %" PRIu64 " hundredths of GPUs: expected at most %u", slices,
			TD_KUBE_GPUS * TD_KUBE_PER_GPU);
	else if (*pod->gang && slices > TD_KUBE_PER_GPU)
		snprintf(pod->problem, sizeof(pod->problem),
			"it asks for %" PRIu64
			" hundredths of GPUs: expected at most %u of each pod of a gang",
			slices, TD_KUBE_PER_GPU);
}

/*
 * Counts what runs at once: the containers with the sidecars, or one of those that run before them.
 */
static void read_asks(const json_t *spec, const char *resource, struct td_kube_pod *pod)
{
	struct td_kube_amounts before = {0}, all = {0};
	const json_t *container;
	bool has_part = false;
	size_t k;

	json_array_foreach(json_object_get(spec, "initContainers"), k, container)
	{
		struct td_kube_amounts asks = asks_of(container, resource);

		has_part |= asks.slices % TD_KUBE_PER_GPU != 0;
		if (!strcmp(text_at(container, "restartPolicy"), "Always"))
			all = join(all, asks, sum);
		else
			before = join(before, join(all, asks, sum), most);
	}
	json_array_foreach(json_object_get(spec, "containers"), k, container)
	{
		struct td_kube_amounts asks = asks_of(container, resource);

		has_part |= asks.slices % TD_KUBE_PER_GPU != 0;
		all = join(all, asks, sum);
	}
	pod->asks = join(join(all, before, most),
		amounts_at(json_object_get(spec, "overhead"), resource), sum);
	pod->asks.pods = 1;
	check_slices(pod, has_part);
}

/* --- pods --- */

static bool read_number(const char *text, uint64_t most_, uint64_t *ret)
{
	return td_parse_u64(text, 0, most_, ret, NULL) == 0;
}

static bool has(const uint32_t *gpus, uint32_t count, uint32_t gpu)
{
	for (uint32_t k = 0; k < count; k++)
		if (gpus[k] == gpu)
			return true;
	return false;
}

/* Reads the GPUs of a placement, "0" or "2,3". Returns their number, 0 if it is none. */
static uint32_t read_gpus(const char *text, uint32_t *ret)
{
	uint32_t count = 0;

	for (; count < TD_KUBE_GPUS && isdigit((unsigned char)*text); text++) {
		char *end;
		unsigned long gpu = strtoul(text, &end, 10);

		if (gpu >= TD_KUBE_GPUS || (*end && *end != ',') || has(ret, count, (uint32_t)gpu))
			return 0;
		ret[count++] = (uint32_t)gpu;
		if (!*end)
			return count;
		text = end;
	}
	return 0;
}

/* A gang is one job of the brain, which gives each of its pods a GPU or a part of one. */
static void read_gang(const json_t *annotations, struct td_kube_pod *pod)
{
	const char *name = text_at(annotations, TD_KUBE_GANG);
	const char *size = text_at(annotations, TD_KUBE_GANG_SIZE);
	uint64_t count = 0;

	if (!*name && !*size)
		return;
	if (!*name || !copy(pod->gang, sizeof(pod->gang), name))
		snprintf(pod->problem, sizeof(pod->problem),
			"the annotation " TD_KUBE_GANG
			"=%.70s is not valid: expected a name of up to "
			"%zu bytes",
			name, sizeof(pod->gang) - 1);
	else if (!read_number(size, TD_GANG_MAX, &count) || !count)
		snprintf(pod->problem, sizeof(pod->problem),
			"the annotation " TD_KUBE_GANG_SIZE
			"=%.32s is not valid: expected the number of the gang's pods, 1 to %u",
			size, TD_GANG_MAX);
	(void)td_printable(pod->problem);
	pod->gang_size = (uint32_t)count;
}

static void read_annotations(const json_t *metadata, struct td_kube_pod *pod)
{
	const json_t *annotations = json_object_get(metadata, "annotations");
	const char *class = text_at(annotations, TD_KUBE_CLASS);

	pod->is_automatic = !strcmp(class, "guaranteed");
	pod->is_guaranteed = pod->is_automatic || !strcmp(class, "online");
	if (*class && !pod->is_guaranteed && strcmp(class, "besteffort")) {
		snprintf(pod->problem, sizeof(pod->problem),
			"the annotation " TD_KUBE_CLASS
			"=%.32s is not valid: expected online, guaranteed or besteffort",
			class);
		(void)td_printable(pod->problem);
	}
	read_gang(annotations, pod);
	pod->gpus = read_gpus(text_at(annotations, TD_KUBE_GPU_INDEX), pod->gpu);
	pod->is_placed = pod->gpus &&
			 read_number(text_at(annotations, TD_KUBE_EPOCH), INT64_MAX, &pod->epoch);
	pod->is_guest = !strcmp(text_at(annotations, TD_KUBE_GUEST), "true");
}

static void read_owner(const json_t *metadata, struct td_kube_pod *pod)
{
	const json_t *owner;
	size_t k;

	json_array_foreach(json_object_get(metadata, "ownerReferences"), k, owner)
	{
		/* A pod of the kubelet's own files is owned by its node. */
		if (json_is_true(json_object_get(owner, "controller")) &&
			strcmp(text_at(owner, "kind"), "Node"))
			(void)copy(pod->owner, sizeof(pod->owner), text_at(owner, "uid"));
	}
}

static void read_status(const json_t *object, struct td_kube_pod *pod)
{
	const char *phase = text_at(json_object_get(object, "status"), "phase");

	pod->is_over = !strcmp(phase, "Succeeded") || !strcmp(phase, "Failed");
}

static bool is_filled(const json_t *field)
{
	return json_object_size(field) || json_array_size(field);
}

static json_t *own(const json_t *object, const char *key)
{
	json_t *field = json_object_get(object, key);

	return is_filled(field) ? json_incref(field) : NULL;
}

/* Writes the demands as one text. NULL without memory: the pod then waits for its own reasons. */
static char *write_demands(const struct td_kube_pod *pod)
{
	json_t *const parts[] = {pod->selector, pod->terms, pod->tolerations};
	json_t *all = json_array();
	char *text;

	for (size_t k = 0; k < sizeof(parts) / sizeof(*parts); k++)
		(void)json_array_append_new(all, parts[k] ? json_incref(parts[k]) : json_null());
	text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(all);
	return text;
}

static bool is_hard(const json_t *spec)
{
	const json_t *spread;
	size_t k;

	json_array_foreach(json_object_get(spec, "topologySpreadConstraints"), k, spread)
	{
		if (!strcmp(text_at(spread, "whenUnsatisfiable"), "DoNotSchedule"))
			return true;
	}
	return false;
}

static bool has_ports(const json_t *spec)
{
	const json_t *container, *port;
	size_t k, n;

	json_array_foreach(json_object_get(spec, "containers"), k, container)
	{
		json_array_foreach(json_object_get(container, "ports"), n, port)
		{
			if (number_at(port, "hostPort"))
				return true;
		}
	}
	return false;
}

/* A demand that the scheduler does not look at is refused, not forgotten. */
static void refuse_demands(const json_t *spec, struct td_kube_pod *pod)
{
	static const char required[] = "requiredDuringSchedulingIgnoredDuringExecution";
	const json_t *affinity = json_object_get(spec, "affinity");
	const json_t *to_pods = json_object_get(affinity, "podAffinity");
	const json_t *from_pods = json_object_get(affinity, "podAntiAffinity");
	const char *what = NULL;

	if (json_array_size(json_object_get(to_pods, required)))
		what = "a required podAffinity";
	else if (json_array_size(json_object_get(from_pods, required)))
		what = "a required podAntiAffinity";
	else if (is_hard(spec))
		what = "a topologySpreadConstraint with DoNotSchedule";
	else if (has_ports(spec))
		what = "a hostPort";
	if (what && !*pod->problem)
		snprintf(pod->problem, sizeof(pod->problem),
			"it has %s: expected a pod without one, because tandem-kube-sched does not "
			"look at it",
			what);
}

static void read_demands(const json_t *spec, struct td_kube_pod *pod)
{
	const json_t *affinity = json_object_get(json_object_get(spec, "affinity"), "nodeAffinity");

	pod->selector = own(spec, "nodeSelector");
	pod->tolerations = own(spec, "tolerations");
	pod->terms =
		own(json_object_get(affinity, "requiredDuringSchedulingIgnoredDuringExecution"),
			"nodeSelectorTerms");
	pod->demands = write_demands(pod);
	refuse_demands(spec, pod);
}

int td_kube_pod_read(
	const json_t *object, const struct td_kube_names *names, struct td_kube_pod *ret)
{
	const json_t *metadata = json_object_get(object, "metadata");
	const json_t *spec = json_object_get(object, "spec");
	struct td_kube_pod pod = {0};
	const char *scheduler = text_at(spec, "schedulerName");

	if (!copy(pod.uid, sizeof(pod.uid), text_at(metadata, "uid")) || !*pod.uid ||
		!copy(pod.space, sizeof(pod.space), text_at(metadata, "namespace")) ||
		!copy(pod.name, sizeof(pod.name), text_at(metadata, "name")) ||
		!copy(pod.node, sizeof(pod.node), text_at(spec, "nodeName")))
		return -EBADMSG;
	read_annotations(metadata, &pod);
	read_asks(spec, names->resource, &pod);
	read_owner(metadata, &pod);
	read_status(object, &pod);
	pod.is_ours = pod.asks.slices && !strcmp(scheduler, names->scheduler);
	pod.is_leaving = json_is_string(json_object_get(metadata, "deletionTimestamp"));
	pod.is_gated = json_array_size(json_object_get(spec, "schedulingGates")) > 0;
	if (pod.is_ours)
		read_demands(spec, &pod);
	*ret = pod;
	return 0;
}

void td_kube_pod_deinit(struct td_kube_pod *pod)
{
	json_decref(pod->selector);
	json_decref(pod->terms);
	json_decref(pod->tolerations);
	free(pod->demands);
	pod->demands = NULL;
	pod->selector = pod->terms = pod->tolerations = NULL;
}

/* --- nodes --- */

static bool is_ready(const json_t *status)
{
	const json_t *condition;
	size_t k;

	json_array_foreach(json_object_get(status, "conditions"), k, condition)
	{
		if (!strcmp(text_at(condition, "type"), "Ready"))
			return !strcmp(text_at(condition, "status"), "True");
	}
	return false;
}

int td_kube_node_read(const json_t *object, const char *resource, struct td_kube_node *ret)
{
	const json_t *metadata = json_object_get(object, "metadata");
	const json_t *spec = json_object_get(object, "spec");
	const json_t *status = json_object_get(object, "status");
	struct td_kube_node node = {0};
	uint64_t all, gpus;

	if (!copy(node.name, sizeof(node.name), text_at(metadata, "name")) || !*node.name)
		return -EBADMSG;
	node.has = amounts_at(json_object_get(status, "allocatable"), resource);
	/* The kubelet counts the slices of broken GPUs in the capacity alone. */
	all = whole_at(json_object_get(status, "capacity"), resource);
	gpus = most(all, node.has.slices) / TD_KUBE_PER_GPU;
	node.gpus = gpus > TD_KUBE_GPUS ? TD_KUBE_GPUS : (uint32_t)gpus;
	node.is_open = is_ready(status) && !json_is_true(json_object_get(spec, "unschedulable")) &&
		       node.has.slices >= (uint64_t)node.gpus * TD_KUBE_PER_GPU;
	node.labels = own(metadata, "labels");
	node.taints = own(spec, "taints");
	*ret = node;
	return 0;
}

void td_kube_node_deinit(struct td_kube_node *node)
{
	json_decref(node->labels);
	json_decref(node->taints);
	node->labels = node->taints = NULL;
}

/* --- lists, events, leases --- */

int td_kube_event_read(const char *bytes, size_t length, struct td_kube_event *ret)
{
	static const char *const types[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
	json_t *root = parse(bytes, length);
	struct td_kube_event event = {
		.root = root, .object = json_object_get(root, "object"), .type = TD_KUBE_ADDED};
	const json_t *metadata = json_object_get(event.object, "metadata");

	while (event.type <= TD_KUBE_ERROR && strcmp(types[event.type], text_at(root, "type")))
		event.type++;
	event.code = number_at(event.object, "code");
	if (event.type > TD_KUBE_ERROR || !json_is_object(event.object) ||
		!copy(event.version, sizeof(event.version), text_at(metadata, "resourceVersion"))) {
		json_decref(root);
		return -EBADMSG;
	}
	*ret = event;
	return 0;
}

void td_kube_event_deinit(struct td_kube_event *event)
{
	json_decref(event->root);
	event->root = NULL;
}

int td_kube_list_read(const char *bytes, size_t length, struct td_kube_list *ret)
{
	json_t *root = parse(bytes, length);
	const json_t *metadata = json_object_get(root, "metadata");
	struct td_kube_list list = {.root = root, .items = json_object_get(root, "items")};

	list.more = *text_at(metadata, "continue") ? text_at(metadata, "continue") : NULL;
	/* No item is null in Go's JSON. */
	if (!root || !metadata ||
		(list.items && !json_is_array(list.items) && !json_is_null(list.items)) ||
		!copy(list.version, sizeof(list.version), text_at(metadata, "resourceVersion"))) {
		json_decref(root);
		return -EBADMSG;
	}
	*ret = list;
	return 0;
}

void td_kube_list_deinit(struct td_kube_list *list)
{
	json_decref(list->root);
	list->root = NULL;
}

int td_kube_lease_read(const char *bytes, size_t length, struct td_kube_lease *ret)
{
	json_t *root = parse(bytes, length);
	const json_t *spec = json_object_get(root, "spec");
	struct td_kube_lease lease = {.duration_s = number_at(spec, "leaseDurationSeconds"),
		.transitions = number_at(spec, "leaseTransitions")};
	const char *version = text_at(json_object_get(root, "metadata"), "resourceVersion");
	bool fits = copy(lease.holder, sizeof(lease.holder), text_at(spec, "holderIdentity")) &&
		    copy(lease.version, sizeof(lease.version), version) && *version &&
		    lease.duration_s < 1000000 && lease.transitions < INT64_MAX;

	json_decref(root);
	if (!fits)
		return -EBADMSG;
	*ret = lease;
	return 0;
}

void td_kube_message(const char *bytes, size_t length, char *ret, size_t len)
{
	json_t *root = parse(bytes, length);

	snprintf(ret, len, "%s", text_at(root, "message"));
	(void)td_printable(ret);
	json_decref(root);
}

bool td_kube_has_version(const char *bytes, size_t length, const char *version)
{
	json_t *root = parse(bytes, length);
	const json_t *row;
	bool found = false;
	size_t k;

	json_array_foreach(json_object_get(root, "versions"), k, row)
	{
		found |= !strcmp(text_at(row, "version"), version);
	}
	json_decref(root);
	return found;
}
