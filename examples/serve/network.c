/* See network.h. */
#include "network.h"

#include <stdio.h>
#include <stdlib.h>

#include "cuda/types.h"
#include "occupy/occupy.h"
#include "occupy/stream.h"
#include "serve_ptx.h"

#define THREADS 128u

CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr address, const void *host, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *host, CUdeviceptr address, size_t bytes);
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);
CUresult cuGetErrorName(CUresult error, const char **name);

static void must(CUresult r, const char *what)
{
	const char *name = NULL;

	if (!r)
		return;
	(void)cuGetErrorName(r, &name);
	fprintf(stderr, "serve: %s: %s (%d)\n", what, name ? name : "?", r);
	exit(1);
}

static void *must_have(size_t count, size_t bytes)
{
	void *memory = calloc(count, bytes);

	if (memory)
		return memory;
	fprintf(stderr, "serve: no memory for %zu values\n", count);
	exit(1);
}

/* Rows of weights sum up to 1, so that values stay as large as they were. */
static void fill_weights(float *weights, uint32_t width, uint32_t layers)
{
	for (uint64_t i = 0; i < (uint64_t)layers * width * width; i++)
		weights[i] = (float)(1 + i % 3) / (2.0f * (float)width);
}

static void load_stream(struct network *network)
{
	struct stream_kernel stream;

	must(stream_load(&stream), "stream");
	network->stream = stream.function;
	network->streamed = stream.memory;
}

void network_init(
	struct network *network, uint32_t width, uint32_t layers, uint32_t batch_max, bool streams)
{
	size_t matrices = (size_t)layers * width * width, rows = (size_t)batch_max * width;
	float *weights = must_have(matrices, sizeof(*weights));
	CUcontext context;
	CUmodule module;
	CUfunction function;
	CUdevice device;

	*network = (struct network){.width = width, .layers = layers, .batch_max = batch_max};
	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, 0), "device");
	must(cuDevicePrimaryCtxRetain(&context, device), "context");
	must(cuCtxSetCurrent(context), "context");
	must(cuModuleLoadData(&module, serve_ptx), "module");
	must(cuModuleGetFunction(&function, module, "layer"), "layer");
	network->function = function;
	must(occupy_load(&function), "occupy");
	network->occupy = function;
	if (streams)
		load_stream(network);
	fill_weights(weights, width, layers);
	must(cuMemAlloc_v2((CUdeviceptr *)&network->weights, matrices * sizeof(float)), "allocate");
	must(cuMemcpyHtoD_v2(network->weights, weights, matrices * sizeof(float)), "copy");
	for (unsigned i = 0; i < 2; i++)
		must(cuMemAlloc_v2((CUdeviceptr *)&network->buffers[i], rows * sizeof(float)),
			"allocate");
	network->rows = must_have(rows, sizeof(float));
	free(weights);
}

static void launch_layer(struct network *network, uint32_t layer, uint32_t rows)
{
	uint64_t in = network->buffers[layer % 2], out = network->buffers[(layer + 1) % 2];
	uint64_t weights = network->weights +
			   (uint64_t)layer * network->width * network->width * sizeof(float);
	unsigned width = network->width, blocks = (rows * width + THREADS - 1) / THREADS;
	void *params[] = {&in, &weights, &out, &width, &rows};

	must(cuLaunchKernel(network->function, blocks, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL),
		"launch");
}

void network_occupy(const struct network *network, unsigned sms, uint64_t ns, uint64_t bytes_per_s)
{
	const struct stream_kernel stream = {network->stream, network->streamed};

	if (stream.function)
		must(stream_start(&stream, sms, ns, bytes_per_s), "launch");
	else
		must(occupy_start(network->occupy, sms, ns), "launch");
}

void network_hold(struct network *network, uint64_t bytes)
{
	if (bytes <= network->activation_bytes)
		return;
	if (network->activation_bytes)
		must(cuMemFree_v2(network->activations), "free");
	must(cuMemAlloc_v2((CUdeviceptr *)&network->activations, bytes), "allocate activations");
	must(cuMemsetD8_v2(network->activations, 1, bytes), "set");
	network->activation_bytes = bytes;
}

void network_run(struct network *network, const float *inputs, uint32_t count, float *ret_outputs)
{
	size_t bytes = (size_t)count * network->width * sizeof(float);

	for (uint32_t row = 0; row < count; row++)
		for (uint32_t i = 0; i < network->width; i++)
			network->rows[(size_t)row * network->width + i] = inputs[row];
	must(cuMemcpyHtoD_v2(network->buffers[0], network->rows, bytes), "copy");
	for (uint32_t layer = 0; layer < network->layers; layer++)
		launch_layer(network, layer, count);
	must(cuMemcpyDtoH_v2(network->rows, network->buffers[network->layers % 2], bytes), "copy");
	for (uint32_t row = 0; row < count; row++) {
		double sum = 0;

		for (uint32_t i = 0; i < network->width; i++)
			sum += network->rows[(size_t)row * network->width + i];
		ret_outputs[row] = (float)(sum / network->width);
	}
}
