/*
 * Any bytes that a kubelet sends after HTTP/2's preface, to the service as it is. Every call that
 * was told of is closed once, and nothing is left.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kubernetes/service.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct td_node_gpus gpus = {.count = 1,
	.gpu = {{"GPU-aaaaaaaa-0000-0000-0000-000000000001", true}},
	.daemon_answers = true};
static struct td_service service;
static int open_calls;

static void called(
	void *arg, struct td_grpc_call *call, const char *path, const uint8_t *message, size_t len)
{
	open_calls++;
	td_service_called(arg, call, path, message, len);
}

static void closed(void *arg, struct td_grpc_call *call)
{
	open_calls--;
	td_service_closed(arg, call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct td_grpc_events events = {.called = called, .closed = closed, .arg = &service};
	struct td_grpc *grpc;

	service = (struct td_service){.library_dir = "/l",
		.socket_dir = "/s",
		.socket_name = "socket",
		.cdi = size % 2 ? "a/b" : NULL,
		.gpus = &gpus};
	grpc = td_grpc_open(-1, true, &events);
	if (!grpc)
		return 0;
	if (!td_grpc_feed(grpc, (const uint8_t *)PREFACE, strlen(PREFACE))) {
		size_t half = size / 2;

		if (!td_grpc_feed(grpc, data, half) && !td_grpc_turn(grpc)) {
			td_service_tell(&service);
			if (!td_grpc_feed(grpc, data + half, size - half))
				(void)td_grpc_turn(grpc);
		}
	}
	td_grpc_close(grpc);
	if (open_calls)
		abort();
	for (uint32_t i = 0; i < TD_SERVICE_WATCHERS; i++)
		if (service.watcher[i])
			abort();
	return 0;
}
