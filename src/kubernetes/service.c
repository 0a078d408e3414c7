/* This file implements service.h. */
#include "kubernetes/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "deviceplugin.pb-c.h"
#include "kubernetes/slices.h"

#define METHOD(name) "/v1beta1.DevicePlugin/" name

#define CONTAINERS 64u /* the most containers in one request */
#define VARIABLES  8u
#define MOUNTS     2u

/* Sends the message as the answer of a call, and ends the call. */
static void answer(struct td_grpc_call *call, const ProtobufCMessage *message)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	td_auto_free uint8_t *bytes = malloc(len ? len : 1);

	if (!bytes) {
		td_grpc_end(call, TD_GRPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	protobuf_c_message_pack(message, bytes);
	if (td_grpc_answer(call, bytes, len))
		td_grpc_end(call, TD_GRPC_RESOURCE_EXHAUSTED, "out of memory");
	else
		td_grpc_end(call, TD_GRPC_OK, NULL);
}

static void refuse(struct td_grpc_call *call, const char *method, const struct td_err *err)
{
	td_log(TD_LOG_WARN, "call=%s refused: %s", method, err->msg);
	td_grpc_end(call, TD_GRPC_INVALID_ARGUMENT, err->msg);
}

static void refuse_bytes(struct td_grpc_call *call)
{
	td_grpc_end(call, TD_GRPC_INVALID_ARGUMENT,
		"the request cannot be read: expected a message of v1beta1");
}

/* -- ListAndWatch -- */

static void send_list(const struct td_service *service, struct td_grpc_call *call)
{
	uint32_t count = service->gpus->count * TD_SLICES_PER_GPU;
	V1beta1__ListAndWatchResponse response = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
	td_auto_free V1beta1__Device *devices = calloc(count + 1, sizeof(*devices));
	td_auto_free V1beta1__Device **pointers = calloc(count + 1, sizeof(*pointers));
	td_auto_free char(*names)[TD_SLICE_TEXT] = calloc(count + 1, sizeof(*names));
	td_auto_free uint8_t *bytes = NULL;
	size_t len;

	if (devices && pointers && names) {
		for (uint32_t i = 0; i < count; i++) {
			const struct td_node_gpu *gpu = &service->gpus->gpu[i / TD_SLICES_PER_GPU];

			td_slice_write(names[i], gpu->uuid, i % TD_SLICES_PER_GPU);
			devices[i] = (V1beta1__Device)V1BETA1__DEVICE__INIT;
			devices[i].id = names[i];
			devices[i].health =
				(char *)(uintptr_t)(gpu->is_healthy ? "Healthy" : "Unhealthy");
			pointers[i] = &devices[i];
		}
		response.devices = pointers;
		response.n_devices = count;
		len = protobuf_c_message_get_packed_size(&response.base);
		bytes = malloc(len + 1);
		if (bytes) {
			protobuf_c_message_pack(&response.base, bytes);
			if (!td_grpc_answer(call, bytes, len))
				return;
		}
	}
	/*
	 * The kubelet calls ListAndWatch again after the plugin has registered again (kubelet.h).
	 */
	td_grpc_end(call, TD_GRPC_RESOURCE_EXHAUSTED,
		"there is no memory, or the kubelet does not read the lists of devices");
}

static void watch(struct td_service *service, struct td_grpc_call *call)
{
	struct td_grpc_call **watcher = service->watcher;
	uint32_t i = 0;

	while (i < TD_SERVICE_WATCHERS && watcher[i])
		i++;
	if (i == TD_SERVICE_WATCHERS) {
		/*
		 * The kubelet needs only one call, so the oldest one belongs to a peer that does
		 * not need it.
		 */
		td_grpc_end(watcher[0], TD_GRPC_RESOURCE_EXHAUSTED, "others watch since");
		memmove(watcher, watcher + 1, --i * sizeof(*watcher));
	}
	watcher[i] = call;
	send_list(service, call);
}

void td_service_tell(struct td_service *service)
{
	for (uint32_t i = 0; i < TD_SERVICE_WATCHERS; i++)
		if (service->watcher[i])
			send_list(service, service->watcher[i]);
}

bool td_service_is_watched(const struct td_service *service)
{
	for (uint32_t i = 0; i < TD_SERVICE_WATCHERS; i++)
		if (service->watcher[i])
			return true;
	return false;
}

void td_service_closed(void *arg, struct td_grpc_call *call)
{
	struct td_service *service = arg;

	for (uint32_t i = 0; i < TD_SERVICE_WATCHERS; i++)
		if (service->watcher[i] == call)
			service->watcher[i] = NULL;
}

/* -- GetDevicePluginOptions, GetPreferredAllocation -- */

static void tell_options(struct td_grpc_call *call)
{
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;

	options.get_preferred_allocation_available = 1;
	answer(call, &options.base);
}

/* Asks where the scheduler has placed the container, unless there are no two GPUs to choose of. */
static void find_wanted(
	const struct td_service *service, size_t size, struct td_slices_wanted *ret_wanted)
{
	uint32_t numbers[TD_SLICES_GPUS], count;

	ret_wanted->count = 0;
	if (!service->placed || service->gpus->count < 2)
		return;
	count = service->placed(service->placed_arg, size, numbers);
	for (uint32_t k = 0; k < count; k++)
		if (numbers[k] < service->gpus->count)
			ret_wanted->uuid[ret_wanted->count++] = service->gpus->gpu[numbers[k]].uuid;
}

static int prefer_for(const struct td_service *service,
	const V1beta1__ContainerPreferredAllocationRequest *request,
	V1beta1__ContainerPreferredAllocationResponse *ret, struct td_err *err)
{
	size_t size = request->allocation_size < 0 ? 0 : (size_t)request->allocation_size;
	td_auto_free const char **chosen =
		calloc(request->n_available_device_ids + 1, sizeof(*chosen));
	struct td_slices_wanted wanted;
	int r;

	if (!chosen)
		return td_err_set(err, -1, "out of memory");
	find_wanted(service, size, &wanted);
	r = td_slices_prefer(request->available_device_ids, request->n_available_device_ids,
		request->must_include_device_ids, request->n_must_include_device_ids, size, &wanted,
		chosen, err);
	if (r)
		return r;
	ret->n_device_ids = size;
	ret->device_ids = (char **)(uintptr_t)chosen;
	chosen = NULL;
	return 0;
}

static void prefer(const struct td_service *service, struct td_grpc_call *call,
	const uint8_t *bytes, size_t len)
{
	V1beta1__PreferredAllocationRequest *request =
		v1beta1__preferred_allocation_request__unpack(NULL, len, bytes);
	V1beta1__PreferredAllocationResponse response =
		V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
	V1beta1__ContainerPreferredAllocationResponse each[CONTAINERS], *pointers[CONTAINERS];
	struct td_err err = {0};
	int r = 0;

	if (!request || request->n_container_requests > CONTAINERS) {
		refuse_bytes(call);
		if (request)
			v1beta1__preferred_allocation_request__free_unpacked(request, NULL);
		return;
	}
	response.container_responses = pointers;
	for (size_t i = 0; i < request->n_container_requests && !r; i++) {
		each[i] = (V1beta1__ContainerPreferredAllocationResponse)
			V1BETA1__CONTAINER_PREFERRED_ALLOCATION_RESPONSE__INIT;
		pointers[i] = &each[i];
		response.n_container_responses++;
		r = prefer_for(service, request->container_requests[i], &each[i], &err);
	}
	if (r)
		refuse(call, "GetPreferredAllocation", &err);
	else
		answer(call, &response.base);
	for (size_t i = 0; i < response.n_container_responses; i++)
		free(each[i].device_ids);
	v1beta1__preferred_allocation_request__free_unpacked(request, NULL);
}

/* -- Allocate -- */

/* The answer for one container, with the memory of all its texts. */
struct container {
	V1beta1__ContainerAllocateResponse response;
	V1beta1__Pair pair[VARIABLES], *pairs[VARIABLES];
	V1beta1__Mount mount[MOUNTS], *mounts[MOUNTS];
	V1beta1__CdiDevice device[TD_SLICES_GPUS], *devices[TD_SLICES_GPUS];
	char value[VARIABLES][TD_GRANT_VALUE];
	char device_name[TD_SLICES_GPUS][128 + TD_UUID_TEXT];
	struct td_grant grant;
};

static char *text(const char *constant)
{
	return (char *)(uintptr_t)constant;
}

/* Adds an environment variable. Returns the buffer for its value. */
static char *add_variable(struct container *c, const char *name)
{
	size_t i = c->response.n_envs++;

	c->pair[i] = (V1beta1__Pair)V1BETA1__PAIR__INIT;
	c->pair[i].key = text(name);
	c->pair[i].value = c->value[i];
	c->pairs[i] = &c->pair[i];
	return c->value[i];
}

static void add_mount(struct container *c, const char *in_container, const char *on_node)
{
	size_t i = c->response.n_mounts++;

	c->mount[i] = (V1beta1__Mount)V1BETA1__MOUNT__INIT;
	c->mount[i].container_path = text(in_container);
	c->mount[i].host_path = text(on_node);
	c->mount[i].read_only = 1;
	c->mounts[i] = &c->mount[i];
}

static void add_devices(struct container *c, const char *kind)
{
	for (uint32_t g = 0; g < c->grant.candidate_count; g++) {
		c->device[g] = (V1beta1__CdiDevice)V1BETA1__CDI_DEVICE__INIT;
		snprintf(c->device_name[g], sizeof(c->device_name[g]), "%.127s=%s", kind,
			c->grant.candidates[g]);
		c->device[g].name = c->device_name[g];
		c->devices[g] = &c->device[g];
	}
	c->response.n_cdi_devices = c->grant.candidate_count;
}

static void fill(const struct td_service *service, struct container *c)
{
	char value[TD_GRANT_VALUE];
	const char *name;

	c->response =
		(V1beta1__ContainerAllocateResponse)V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
	c->response.envs = c->pairs;
	c->response.mounts = c->mounts;
	c->response.cdi_devices = c->devices;
	snprintf(add_variable(c, "LD_PRELOAD"), TD_GRANT_VALUE, "%s",
		TD_SERVICE_LIBRARY_DIR "/libtandem.so");
	snprintf(add_variable(c, "TANDEM_SOCKET"), TD_GRANT_VALUE, "%s/%s", TD_SERVICE_SOCKET_DIR,
		service->socket_name);
	for (uint32_t at = 0; (name = td_grant_variable(&c->grant, at, value)); at++)
		strcpy(add_variable(c, name), value);
	/*
	 * A container's image may ask NVIDIA's runtime for all GPUs. With CDI, "void" tells it to
	 * add none.
	 */
	if (service->cdi)
		strcpy(add_variable(c, "NVIDIA_VISIBLE_DEVICES"), "void");
	if (service->cdi)
		add_devices(c, service->cdi);
	else /* NVIDIA's container runtime makes these GPUs visible */
		td_grant_candidates(&c->grant, add_variable(c, "NVIDIA_VISIBLE_DEVICES"));
	add_mount(c, TD_SERVICE_LIBRARY_DIR, service->library_dir);
	add_mount(c, TD_SERVICE_SOCKET_DIR, service->socket_dir);
}

static void allocate_all(struct td_service *service, struct td_grpc_call *call,
	const V1beta1__AllocateRequest *request)
{
	size_t count = request->n_container_requests;
	V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;
	V1beta1__ContainerAllocateResponse *pointers[CONTAINERS];
	td_auto_free struct container *containers = calloc(count ? count : 1, sizeof(*containers));
	struct td_err err = {0};

	if (!containers) {
		td_grpc_end(call, TD_GRPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	for (size_t i = 0; i < count; i++) {
		struct container *c = &containers[i];

		if (td_slices_grant(request->container_requests[i]->device_ids,
			    request->container_requests[i]->n_device_ids, &c->grant, &err)) {
			refuse(call, "Allocate", &err);
			return;
		}
		fill(service, c);
		pointers[i] = &c->response;
		td_log(TD_LOG_INFO, "job=%s hundredths=%u gpus=%u candidates=%u given",
			c->grant.job, c->grant.hundredths, c->grant.gpus, c->grant.candidate_count);
	}
	service->grants += count;
	response.container_responses = pointers;
	response.n_container_responses = count;
	answer(call, &response.base);
}

static void allocate(
	struct td_service *service, struct td_grpc_call *call, const uint8_t *bytes, size_t len)
{
	V1beta1__AllocateRequest *request = v1beta1__allocate_request__unpack(NULL, len, bytes);

	if (!request || request->n_container_requests > CONTAINERS)
		refuse_bytes(call);
	else
		allocate_all(service, call, request);
	if (request)
		v1beta1__allocate_request__free_unpacked(request, NULL);
}

/* -- all calls -- */

void td_service_called(
	void *arg, struct td_grpc_call *call, const char *path, const uint8_t *message, size_t len)
{
	struct td_service *service = arg;
	char why[TD_GRPC_TEXT];

	if (!strcmp(path, METHOD("ListAndWatch"))) {
		watch(service, call);
	} else if (!strcmp(path, METHOD("Allocate"))) {
		allocate(service, call, message, len);
	} else if (!strcmp(path, METHOD("GetPreferredAllocation"))) {
		prefer(service, call, message, len);
	} else if (!strcmp(path, METHOD("GetDevicePluginOptions"))) {
		tell_options(call);
	} else {
		snprintf(why, sizeof(why),
			"\"%.100s\" is not a method of v1beta1.DevicePlugin here", path);
		td_grpc_end(call, TD_GRPC_UNIMPLEMENTED, why);
	}
}

uint8_t *td_service_register(const char *endpoint, const char *resource, size_t *ret_len)
{
	V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	uint8_t *bytes;

	options.get_preferred_allocation_available = 1;
	request.version = text("v1beta1");
	request.endpoint = text(endpoint);
	request.resource_name = text(resource);
	request.options = &options;
	*ret_len = protobuf_c_message_get_packed_size(&request.base);
	bytes = malloc(*ret_len);
	if (bytes)
		protobuf_c_message_pack(&request.base, bytes);
	return bytes;
}
