/*
 * nvidia-cuda-mps-server: the process that MPS clients belong to. The control daemon starts it as
 *
 *   nvidia-cuda-mps-server SHARE
 *
 * with the share of the SMs that its clients get, in ppm. It serves the GPUs that
 * CUDA_VISIBLE_DEVICES names. On stdout it prints "ready", or why it cannot serve. It ends when
 * stdin is closed or the softgpu server has ended. The clients themselves talk only to the softgpu
 * server (softgpu/server/mps.c).
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "cuda/visible.h"
#include "softgpu/server/client.h"

#define PPM 1000000u

static int fail(const char *why)
{
	dprintf(1, "%s\n", why);
	return 1;
}

/* Returns the GPUs of the softgpu that are visible to this process, one bit each; 0: none. */
static uint64_t visible_gpus(struct sg_client *client, uint32_t count)
{
	uint8_t uuids[SG_GPU_MAX][16];
	uint32_t gpus[SG_GPU_MAX];
	uint64_t mask = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct sg_msg msg = {.type = SG_GPU_INFO, .gpu = i};
		struct sg_gpu_info info;

		if (sg_client_request(client, &msg, &info, sizeof(info), NULL) || msg.error)
			return 0;
		memcpy(uuids[i], info.uuid, sizeof(uuids[i]));
	}
	count = td_visible(getenv("CUDA_VISIBLE_DEVICES"), uuids, count, gpus);
	for (uint32_t i = 0; i < count; i++)
		mask |= 1ull << gpus[i];
	return mask;
}

static void *await_daemon(void *arg)
{
	char byte;

	(void)arg;
	while (read(0, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	struct sg_msg msg = {.type = SG_MPS_SERVE};
	char dir[PATH_MAX], why[160];
	struct td_err err = {0};
	struct sg_client *client;
	pthread_t thread;
	uint32_t count;

	if (argc != 2 || td_parse_u64(argv[1], 1, PPM, &msg.value2, &err)) {
		fputs("usage: nvidia-cuda-mps-server SHARE, by nvidia-cuda-mps-control\n", stderr);
		return 1;
	}
	prctl(PR_SET_NAME, "nvidia-cuda-mps");
	if (!sg_dir(dir, sizeof(dir)) || sg_client_new(dir, &client, &count)) {
		snprintf(why, sizeof(why), "no software GPU at %.100s", dir);
		return fail(why);
	}
	msg.value = visible_gpus(client, count);
	if (!msg.value)
		return fail("CUDA_VISIBLE_DEVICES names no GPU");
	if (sg_client_request(client, &msg, NULL, 0, NULL) || msg.error)
		return fail("the software GPU takes no MPS server");
	if (pthread_create(&thread, NULL, await_daemon, NULL))
		return fail("no thread");
	dprintf(1, "ready\n");
	sg_client_await_end(client);
	return 1;
}
