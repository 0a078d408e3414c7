/*
 * The cost of allocating, setting and freeing, and of loading and unloading modules with a
 * variable, with a driver that does none of it: {"alloc": ns, "set": ns, "free": ns, "one": ns,
 * "load": ns, "unload": ns}, the mean of a round of CALLS, for each of ROUNDS rounds. "one" is an
 * allocation that is freed at once, with its free, while no other exists. N processes run at once,
 * of which the first prints. Run alone and under `tandem run` in turn, the difference is tandem's.
 *
 * usage: alloc PROCESSES [KIB of a block, else 64]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "cuda/types.h"

#define ROUNDS 101
#define CALLS  200

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count, CUstream stream);

CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);

static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			    ".global .align 4 .b8 words[65536];\n";

struct times {
	uint64_t alloc_ns, set_ns, free_ns, one_ns, load_ns, unload_ns;
};

static size_t block_bytes = 64u << 10;

static void must(CUresult r)
{
	if (!r)
		return;
	fputs("alloc: out of memory\n", stderr);
	exit(1);
}

static struct times round_of(void)
{
	CUdeviceptr blocks[CALLS];
	CUmodule modules[CALLS];
	uint64_t began = td_time_now_ns(), allocated, set, freed, ones, loaded;

	for (unsigned i = 0; i < CALLS; i++)
		must(cuMemAlloc_v2(&blocks[i], block_bytes));
	allocated = td_time_now_ns();
	/*
	 * Each call has another address, so that the last look-up helps as little as in a program.
	 */
	for (unsigned i = 0; i < CALLS; i++)
		(void)cuMemsetD8Async(blocks[i * 77 % CALLS], 0, block_bytes, NULL);
	set = td_time_now_ns();
	for (unsigned i = 0; i < CALLS; i++)
		(void)cuMemFree_v2(blocks[i]);
	freed = td_time_now_ns();
	for (unsigned i = 0; i < CALLS; i++) {
		must(cuMemAlloc_v2(&blocks[0], block_bytes));
		(void)cuMemFree_v2(blocks[0]);
	}
	ones = td_time_now_ns();
	for (unsigned i = 0; i < CALLS; i++)
		must(cuModuleLoadData(&modules[i], image));
	loaded = td_time_now_ns();
	for (unsigned i = 0; i < CALLS; i++)
		(void)cuModuleUnload(modules[i]);
	return (struct times){(allocated - began) / CALLS, (set - allocated) / CALLS,
		(freed - set) / CALLS, (ones - freed) / CALLS, (loaded - ones) / CALLS,
		(td_time_now_ns() - loaded) / CALLS};
}

/* Nobody goes on before all have come. */
static void meet(_Atomic int *together, int processes)
{
	atomic_fetch_add(together, 1);
	while (atomic_load(together) < processes)
		usleep(1000);
}

int main(int argc, char **argv)
{
	int processes = argc > 1 ? atoi(argv[1]) : 0, kib = argc > 2 ? atoi(argv[2]) : 64;
	_Atomic int *together =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool speaks = true;

	if (argc > 3 || processes < 1 || kib < 1 || together == MAP_FAILED) {
		fputs("usage: alloc PROCESSES [KIB]\n", stderr);
		return 2;
	}
	block_bytes = (size_t)kib << 10;
	for (int i = 1; i < processes && speaks; i++)
		speaks = fork() != 0;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct times took = round_of();

		/* The first round registers the process. */
		if (!i)
			meet(together, processes);
		else if (speaks)
			printf("{\"alloc\": %llu, \"set\": %llu, \"free\": %llu, \"one\": %llu, "
			       "\"load\": %llu, \"unload\": %llu}\n",
				(unsigned long long)took.alloc_ns, (unsigned long long)took.set_ns,
				(unsigned long long)took.free_ns, (unsigned long long)took.one_ns,
				(unsigned long long)took.load_ns,
				(unsigned long long)took.unload_ns);
	}
	while (speaks && wait(NULL) > 0)
		;
	return 0;
}
