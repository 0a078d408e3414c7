/*
 * A replacement for nvcc's host code of a program: fat binaries, their registration, and stubs that
 * launch.
 */
#pragma once

#include <stdint.h>

#include "softgpu/cudart/abi.h"
#include "test.h"

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int thread_limit, void *tid, void *bid, void *block, void *grid, int *warp_size);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
	size_t bytes, int constant, int global);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream stream);
int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
int __cudaGetKernel(void **kernel, const void *host);
int __cudaLaunchKernel(
	const void *kernel, dim3 grid, dim3 block, void **args, size_t shared, CUstream stream);
int cudaLaunchKernel(
	const void *host, dim3 grid, dim3 block, void **args, size_t shared, CUstream stream);
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemset(void *at, int value, size_t bytes);
int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset, int kind);
int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind);
int cudaGetSymbolSize(size_t *bytes, const void *symbol);
int cudaFuncGetAttributes(struct cudaFuncAttributes *ret, const void *host);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
int cudaVDPAUGetDevice(int *device, int display, void *get);
int cudaDeviceSynchronize(void);
int cudaStreamCreate(CUstream *stream);
int cudaStreamDestroy(CUstream stream);
int cudaStreamSynchronize(CUstream stream);

#define OK(call) CHECK_EQ(call, cudaSuccess)

/* A header, one entry of PTX text behind it, and the wrapper that a constructor registers. */
struct image {
	uint32_t magic, version;
	const void *data;
	const void *const *linked;
	uint8_t *bytes;
};

/*
 * Returns the text of one file under tests/data/ptx, for an architecture, as nvcc packs it without
 * compression.
 */
static inline struct image image_of(const char *file, uint32_t sm)
{
	const size_t header = 16, entry = 64;
	char path[512];
	struct image image = {.magic = 0x466243b1, .version = 1};
	FILE *in;
	size_t text;

	snprintf(path, sizeof(path), PTX_DATA "/%s", file);
	in = fopen(path, "rbe");
	CHECK(in);
	fseek(in, 0, SEEK_END);
	text = ((size_t)ftell(in) + 8) & ~(size_t)7;
	rewind(in);
	image.bytes = calloc(1, header + entry + text);
	CHECK(image.bytes);
	memcpy(image.bytes, &(uint64_t){0x00100001ba55ed50}, 8);
	memcpy(image.bytes + 8, &(uint64_t){entry + text}, 8);
	memcpy(image.bytes + header, &(uint64_t){0x0000004001010001}, 8);
	memcpy(image.bytes + header + 8, &(uint64_t){text}, 8);
	memcpy(image.bytes + header + 28, &sm, 4);
	CHECK(fread(image.bytes + header + entry, 1, text, in) > 0);
	fclose(in);
	image.data = image.bytes;
	return image;
}

static inline void name_function(void **handle, const char *host, const char *name)
{
	__cudaRegisterFunction(handle, host, (char *)name, name, -1, NULL, NULL, NULL, NULL, NULL);
}

static inline void name_variable(void **handle, char *host, const char *name, size_t bytes)
{
	__cudaRegisterVar(handle, host, (char *)name, name, 0, bytes, 0, 0);
}

/* kernel<<<grid, block, shared, stream>>>(...), and what its stub does with it. */
static inline int launch(
	const void *host, dim3 grid, dim3 block, size_t shared, CUstream stream, void **args)
{
	void *kernel = NULL;
	int error;

	if (__cudaPushCallConfiguration(grid, block, shared, stream))
		return cudaGetLastError();
	error = __cudaGetKernel(&kernel, host);
	if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream) || error)
		return error ? error : -1;
	return __cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

static inline void *upload(const void *from, size_t bytes)
{
	void *at;

	OK(cudaMalloc(&at, bytes));
	if (from)
		OK(cudaMemcpy(at, from, bytes, cudaMemcpyHostToDevice));
	else
		OK(cudaMemset(at, 0, bytes));
	return at;
}

static inline void download(void *to, const void *from, size_t bytes)
{
	OK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}
