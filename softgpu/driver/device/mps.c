/*
 * MPS clients. At cuInit() a process asks the MPS control daemon of its pipe directory for a
 * server. If there is a daemon and it serves the same softgpu, the process becomes a client of
 * MPS: its kernels run beside those of other clients (softgpu/server/mps.c), on the GPUs and on
 * the share of the SMs that the server has.
 *
 * Shares. CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is read at cuInit() and can only lower what the server
 * gives. With CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING=1 it is read at each
 * creation of a context instead. A percentage is rounded down to whole units of SMs, a number of
 * SMs (cuCtxCreate_v3) up.
 *
 * A client that calls exit() says so, because its work may be in flight. One that is killed cannot.
 */
#include "softgpu/driver/device/mps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/spatial.h"
#include "softgpu/driver/driver.h"
#include "softgpu/server/mps_pipe.h"

#define PPM 1000000u

static struct {
	int server; /* the server's pid; 0: this process is not a client of MPS */
	uint64_t gpus;
	uint32_t share_ppm;
	bool per_context;
} mps;

/* Returns the percentage of the environment. An invalid value counts as none. */
static double percentage(void)
{
	const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	char *end;
	double value;

	if (!text || !*text)
		return 100;
	value = strtod(text, &end);
	return !*end && value > 0 && value <= 100 ? value : 100;
}

static void leave(void)
{
	const struct sg_msg msg = {.type = SG_MPS_LEAVE};

	if (sg.initialised && sg.pid == getpid())
		(void)sg_client_tell(sg.client, &msg);
}

static int join(int server)
{
	uint32_t own = mps.per_context ? PPM : (uint32_t)(percentage() * (PPM / 100) + 0.5);
	struct sg_msg msg = {.type = SG_MPS_JOIN, .value = (uint64_t)server, .value2 = own};

	if (!own)
		msg.value2 = 1;
	if (sg_client_request(sg.client, &msg, NULL, 0, NULL))
		return SG_LOST;
	if (msg.error)
		return sg_mps_result(msg.error);
	mps.server = server;
	mps.gpus = msg.value;
	mps.share_ppm = (uint32_t)msg.value2;
	atexit(leave);
	return CUDA_SUCCESS;
}

int sg_mps_join(const char *dir)
{
	char pipe[256], answer[SG_MPS_ANSWER_MAX], real[4096], *of = NULL;
	const char *per_context =
		getenv("CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING");
	int r = sg_mps_pipe_directory(pipe, sizeof(pipe)), number = 0, at = 0;

	if (!r)
		r = sg_mps_pipe_ask(pipe, SG_MPS_CONNECT, answer, sizeof(answer));
	if (r == -ENOENT || r == -ENOTDIR || r == -ECONNREFUSED)
		return CUDA_SUCCESS;
	if (r < 0 || sscanf(answer, "%d %n", &number, &at) != 1 || (!r && !at))
		return CUDA_ERROR_MPS_CONNECTION_FAILED;
	if (r)
		return number;
	of = answer + at;
	/* Another softgpu's daemon is like one on another machine. */
	if (strcmp(of, realpath(dir, real) ? real : dir))
		return CUDA_SUCCESS;
	mps.per_context = per_context && !strcmp(per_context, "1");
	return join(number);
}

int sg_mps_limit(void)
{
	const char *text = getenv(SG_MPS_LIMIT_ENV);
	uint64_t limits[SG_MPS_GPUS_MAX];

	if (!mps.server || !text || sg_mps_parse_limits(text, limits))
		return CUDA_SUCCESS;
	for (uint32_t i = 0; i < sg.device_count; i++) {
		struct sg_msg msg = {.type = SG_MPS_LIMIT, .gpu = i, .bytes = limits[i]};

		if (limits[i] && sg_client_request(sg.client, &msg, NULL, 0, NULL))
			return SG_LOST;
	}
	return CUDA_SUCCESS;
}

int sg_mps_server(void)
{
	return mps.server;
}

bool sg_mps_has_gpu(uint32_t gpu)
{
	return !mps.server || mps.gpus >> gpu & 1;
}

uint32_t sg_mps_sm_count(uint32_t device)
{
	const struct td_gpu_spec *spec = &sg.devices[device].spec;

	return mps.server ? td_spatial_sms_of_percentage(spec, mps.share_ppm / (PPM / 100.0))
			  : spec->sm_count;
}

uint32_t sg_mps_context_sms(uint32_t device, uint32_t asked)
{
	const struct td_gpu_spec *spec = &sg.devices[device].spec;
	uint32_t most = sg_mps_sm_count(device), own = most;

	if (asked)
		own = td_spatial_sms_of_affinity(spec, asked);
	else if (mps.per_context)
		own = td_spatial_sms_of_percentage(spec, percentage());
	return own < most ? own : most;
}

uint32_t sg_mps_ppm(uint32_t device, uint32_t sms)
{
	uint32_t all = sg.devices[device].spec.sm_count;

	return (uint32_t)(((uint64_t)sms * PPM + all - 1) / all);
}

int sg_mps_result(uint32_t error)
{
	switch (error) {
	case SG_ERR_LOST: return SG_LOST;
	case SG_ERR_HANDLE: return CUDA_ERROR_MPS_CONNECTION_FAILED;
	case SG_ERR_MPS_NOT_READY: return CUDA_ERROR_MPS_SERVER_NOT_READY;
	case SG_ERR_MPS_CLIENTS: return CUDA_ERROR_MPS_MAX_CLIENTS_REACHED;
	case SG_ERR_MPS_TERMINATED: return CUDA_ERROR_MPS_CLIENT_TERMINATED;
	case SG_ERR_MPS_GONE: return CUDA_ERROR_MPS_RPC_FAILURE;
	default: return CUDA_ERROR_OUT_OF_MEMORY;
	}
}

void sg_mps_context_died(const struct CUctx_st *context, int error)
{
	const struct sg_msg msg = {
		.type = SG_MPS_FAULT, .gpu = context->device, .value = (uint64_t)error};

	if (mps.server)
		(void)sg_client_tell(sg.client, &msg);
}
