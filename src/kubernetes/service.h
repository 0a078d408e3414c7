/*
 * The device plugin's service: answers the kubelet's calls (deviceplugin.proto).
 *
 * ListAndWatch sends all slices of all GPUs, and sends them again whenever a GPU comes, is lost or
 * comes back. GetPreferredAllocation and Allocate use slices.h. Allocate tells the kubelet what to
 * put into the container: libtandem.so and the daemon's socket, mounted, and the variables that
 * they need.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kubernetes/gpus.h"
#include "kubernetes/grpc.h"

#define TD_SERVICE_WATCHERS 32u

struct td_service {
	/* Paths on the node: the folder of libtandem.so, and the folder of the daemon's socket. */
	const char *library_dir, *socket_dir;
	const char *socket_name; /* the name of the socket in socket_dir */
	const char *cdi;         /* the kind of CDI devices, such as nvidia.com/gpu; NULL: none */
	const struct td_node_gpus *gpus;
	/*
	 * Writes the numbers of the GPUs on which a scheduler has placed the next container with so
	 * many slices, at most TD_NODE_GPUS. Returns how many; 0: it is not known. NULL: no
	 * scheduler does.
	 */
	uint32_t (*placed)(void *arg, uint64_t slices, uint32_t *ret_gpus);
	void *placed_arg;

	/* open calls of ListAndWatch; NULL: a free entry */
	struct td_grpc_call *watcher[TD_SERVICE_WATCHERS];
	/* the number of containers that were given slices */
	uint64_t grants;
};

/* The folders of both inside the container. */
#define TD_SERVICE_LIBRARY_DIR "/opt/tandem"
#define TD_SERVICE_SOCKET_DIR  "/run/tandem"

/* The callbacks of td_grpc_events for a server's connections. arg is the struct td_service. */
void td_service_called(
	void *arg, struct td_grpc_call *call, const char *path, const uint8_t *message, size_t len);
void td_service_closed(void *arg, struct td_grpc_call *call);

/* Returns whether a call of ListAndWatch is open. */
bool td_service_is_watched(const struct td_service *service);

/* Sends the list to all open calls of ListAndWatch, since the GPUs have changed. */
void td_service_tell(struct td_service *service);

/*
 * Returns the message for the kubelet's Register, which the caller frees; NULL if memory is short.
 * endpoint is the name of the plugin's socket; resource is a name such as tandem.dev/gpu.
 */
uint8_t *td_service_register(const char *endpoint, const char *resource, size_t *ret_len);
