/*
 * Arbitrary packets of three clients that come and go: the server keeps its books, and nothing is
 * left when all are gone.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/server/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *peer, const struct sg_msg *msg, const void *extra, size_t len)
{
	(void)peer;
	(void)msg;
	(void)extra;
	(void)len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sg_server server;
	struct sg_peer_state *clients[3] = {NULL};
	uint64_t now = 1000000000;

	sg_server_init(&server, td_gpu_spec_find("tiny"), 2, now);
	server.send = ignore;
	for (size_t i = 0; i + 8 <= size && i < 800; i += 8) {
		const uint8_t *p = data + i;
		struct sg_peer_state **client = &clients[p[0] % 3];
		struct {
			struct sg_msg msg;
			struct sg_touch run;
		} packet = {0};

		if (!*client)
			*client = sg_server_connect(&server, client, 1);
		packet.msg.type = p[1] % (SG_DONE + 2);
		packet.msg.gpu = p[2] & 1;
		packet.msg.context = p[2] >> 1 & 7;
		packet.msg.engine = p[3] & 7;
		packet.msg.range = p[3] >> 3 & 7;
		packet.msg.op = p[4] & 15;
		packet.msg.bytes = (uint64_t)p[5] << (p[6] & 31);
		packet.msg.value =
			packet.msg.type == SG_OP_TOUCH ? 1 : (uint64_t)p[5] << (p[7] & 63);
		packet.msg.value2 = (uint64_t)p[6] << 12;
		/* Few files, and pieces that fit, so that clients meet. */
		if (packet.msg.type == SG_MEMORY_HOLD || packet.msg.type == SG_MEMORY_DROP ||
			packet.msg.type == SG_MEMORY_SHARE) {
			packet.msg.value = p[4] & 3;
			packet.msg.value2 = 0;
			packet.msg.bytes = (uint64_t)(p[5] & 3) << 22;
		}
		/* All are process 1; two GPUs can change places. */
		if (packet.msg.type == SG_CHECKPOINT) {
			packet.msg.value = 1;
			packet.msg.value2 = p[6];
		}
		/* Small GPU sets and shares; all are process 1, the MPS server, too. */
		if (packet.msg.type >= SG_MPS_SERVE && packet.msg.type <= SG_MPS_TERMINATE)
			packet.msg.value = packet.msg.type == SG_MPS_SERVE ? p[5] & 3 : 1;
		if (packet.msg.type == SG_MPS_TERMINATE)
			packet.msg.value2 = 1;
		packet.run = (struct sg_touch){p[3] >> 3 & 7, p[7] & 1, p[5], p[6]};
		now += (uint64_t)p[7] * 100000;
		/* The server bounds managed memory; here the bound is lower, to be quick. */
		if (packet.msg.type == SG_MANAGED_NEW && packet.msg.bytes > 256u << 20)
			packet.msg.bytes = 256u << 20;
		if (sg_server_packet(&server, *client, &packet,
			    sizeof(packet.msg) +
				    (packet.msg.type == SG_OP_TOUCH ? sizeof(packet.run) : 0),
			    now) < 0) {
			sg_server_disconnect(&server, *client, now);
			*client = NULL;
		}
	}
	free(sg_server_status(&server, now));
	for (int c = 0; c < 3; c++)
		if (clients[c])
			sg_server_disconnect(&server, clients[c], now);
	for (uint32_t g = 0; g < server.gpu_count; g++)
		if (server.gpus[g].memory.plain_bytes || server.gpus[g].memory.resident_bytes)
			abort();
	return 0;
}
