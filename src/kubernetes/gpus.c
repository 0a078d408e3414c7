/* This file implements gpus.h. */
#include "kubernetes/gpus.h"

#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "gpu/nvml.h"
#include "proto/proto.h"
#include "proto/socket.h"
#include "view/metrics.h"

#define PATIENCE_NS (200 * TD_NS_PER_MS)

static void take_row(struct td_node_gpus *gpus, const struct td_msg_gpu *row)
{
	struct td_node_gpu *gpu = gpus->gpu;
	char uuid[TD_UUID_TEXT];

	td_gpu_uuid(uuid, row);
	while (gpu < gpus->gpu + gpus->count && strcmp(gpu->uuid, uuid))
		gpu++;
	if (gpu == gpus->gpu + TD_NODE_GPUS)
		return;
	if (gpu == gpus->gpu + gpus->count) {
		strcpy(gpu->uuid, uuid);
		gpus->count++;
	}
	gpu->is_healthy = !(row->known & TD_GPU_IS_LOST) && strcmp(row->health, "broken") != 0;
}

/* Asks the daemon for its GPUs. Returns whether all rows have come. */
static bool ask(struct td_node_gpus *gpus, const char *socket)
{
	struct td_msg request = {.type = TD_MSG_TYPE_list_gpus}, msg;
	int fd = td_socket_connect(socket, PATIENCE_NS);
	int r = fd < 0 ? fd : td_socket_send(fd, &request, NULL, 0);

	for (uint32_t rows = 0; !r && rows < 4 * TD_NODE_GPUS; rows++) {
		r = td_socket_recv(fd, &msg, NULL, 0);
		if (!r && msg.type == TD_MSG_TYPE_gpu)
			take_row(gpus, &msg.gpu);
		if (!r && msg.type == TD_MSG_TYPE_end)
			break;
		r = r == TD_PROTO_UNKNOWN ? 0 : r;
	}
	if (fd >= 0)
		close(fd);
	return !r;
}

bool td_node_gpus_ask(struct td_node_gpus *gpus, const char *socket)
{
	struct td_node_gpus before = *gpus;

	for (uint32_t i = 0; i < gpus->count; i++)
		gpus->gpu[i].is_healthy = false;
	gpus->daemon_answers = ask(gpus, socket);
	if (before.count != gpus->count || before.daemon_answers != gpus->daemon_answers)
		return true;
	for (uint32_t i = 0; i < gpus->count; i++)
		if (before.gpu[i].is_healthy != gpus->gpu[i].is_healthy)
			return true;
	return false;
}
