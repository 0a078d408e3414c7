/*
 * For programs on the runtime: each compares with the CPU's results and prints "ok". 77: the driver
 * lacks what it needs.
 */
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static inline void check(cudaError_t error, const char *call, int line)
{
	if (error == cudaSuccess)
		return;
	printf("line %d: %s: %s\n", line, call, cudaGetErrorName(error));
	exit(error == cudaErrorNotSupported ? 77 : 1);
}

static inline void expect(bool so, const char *what, int line)
{
	if (so)
		return;
	printf("line %d: not so: %s\n", line, what);
	exit(1);
}

static inline void expect_error(cudaError_t error, cudaError_t wanted, const char *call, int line)
{
	cudaError_t last = cudaGetLastError();

	if (error == wanted && last == wanted)
		return;
	printf("line %d: %s: %s, last %s, expected %s\n", line, call, cudaGetErrorName(error),
		cudaGetErrorName(last), cudaGetErrorName(wanted));
	exit(1);
}

#define CHECK(call)              check((call), #call, __LINE__)
#define EXPECT(what)             expect((what), #what, __LINE__)
#define EXPECT_ERROR(call, code) expect_error((call), (code), #call, __LINE__)

static inline int passed()
{
	puts("ok");
	return 0;
}
