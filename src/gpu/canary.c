/*
 * Implements canary.h. The few CUDA functions are declared here, because the daemon is built
 * without CUDA's headers.
 */
#include "gpu/canary.h"

#include <dlfcn.h>
#include <grp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#define NOBODY        65534
#define WORDS         256
#define PATTERN       0x5ca1ab1eu
#define OUT_OF_MEMORY 2

static struct {
	int (*init)(unsigned flags);
	int (*ctx_create)(void **ret, unsigned flags, int device);
	int (*ctx_destroy)(void *context);
	int (*mem_alloc)(uint64_t *ret, size_t bytes);
	int (*memset_words)(uint64_t to, unsigned value, size_t count, void *stream);
	int (*synchronize)(void);
	int (*read)(void *to, uint64_t from, size_t bytes);
} cuda;

static const struct {
	const char *name;
	void **call;
} calls[] = {
	{"cuInit", (void **)&cuda.init},
	{"cuCtxCreate_v2", (void **)&cuda.ctx_create},
	{"cuCtxDestroy_v2", (void **)&cuda.ctx_destroy},
	{"cuMemAlloc_v2", (void **)&cuda.mem_alloc},
	{"cuMemsetD32Async", (void **)&cuda.memset_words},
	{"cuCtxSynchronize", (void **)&cuda.synchronize},
	{"cuMemcpyDtoH_v2", (void **)&cuda.read},
};

static bool load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	for (size_t i = 0; library && i < sizeof(calls) / sizeof(*calls); i++) {
		*calls[i].call = dlsym(library, calls[i].name);
		if (!*calls[i].call)
			return false;
	}
	return library != NULL;
}

static bool try_work(uint64_t memory)
{
	uint32_t words[WORDS] = {0};

	if (cuda.memset_words(memory, PATTERN, WORDS, NULL) || cuda.synchronize() ||
		cuda.read(words, memory, sizeof(words)))
		return false;
	for (size_t i = 0; i < WORDS; i++)
		if (words[i] != PATTERN)
			return false;
	return true;
}

static bool become(uid_t uid)
{
	if (geteuid() || !uid)
		return true;
	return !setgroups(0, NULL) && !setresgid(NOBODY, NOBODY, NOBODY) &&
	       !setresuid(uid, uid, uid);
}

enum td_canary_status td_canary_run(uid_t uid)
{
	void *context;
	uint64_t memory;
	bool good;
	int r;

	if (!become(uid) || !load())
		return TD_CANARY_NO_DRIVER;
	if (cuda.init(0))
		return TD_CANARY_WRONG;
	r = cuda.ctx_create(&context, 0, 0);
	if (!r)
		r = cuda.mem_alloc(&memory, WORDS * sizeof(uint32_t));
	if (r)
		return r == OUT_OF_MEMORY ? TD_CANARY_NO_DRIVER : TD_CANARY_WRONG;
	good = try_work(memory);
	return !cuda.ctx_destroy(context) && good ? TD_CANARY_ENDED : TD_CANARY_WRONG;
}
