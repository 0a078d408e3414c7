/*
 * What allocating and freeing costs with a driver that does neither: {"alloc": ns, "free": ns}, the mean of a round of CALLS, for each of
 * ROUNDS rounds; from N processes at once, of which the first speaks. Run alone and under `tandem run` in turn, the difference is tandem's.
 *
 * usage: alloc PROCESSES
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
#define BLOCK  (64u << 10)

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);

static void round_of(uint64_t *ret_alloc_ns, uint64_t *ret_free_ns)
{
	CUdeviceptr blocks[CALLS];
	uint64_t began = td_time_now_ns(), middle;

	for (unsigned i = 0; i < CALLS; i++) {
		if (cuMemAlloc_v2(&blocks[i], BLOCK)) {
			fputs("alloc: out of memory\n", stderr);
			exit(1);
		}
	}
	middle = td_time_now_ns();
	for (unsigned i = 0; i < CALLS; i++)
		(void)cuMemFree_v2(blocks[i]);
	*ret_alloc_ns = (middle - began) / CALLS;
	*ret_free_ns = (td_time_now_ns() - middle) / CALLS;
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
	int processes = argc == 2 ? atoi(argv[1]) : 0;
	_Atomic int *together =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool speaks = true;

	if (processes < 1 || together == MAP_FAILED) {
		fputs("usage: alloc PROCESSES\n", stderr);
		return 2;
	}
	for (int i = 1; i < processes && speaks; i++)
		speaks = fork() != 0;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t alloc_ns, free_ns;

		round_of(&alloc_ns, &free_ns);
		/* The first round registers the process. */
		if (!i)
			meet(together, processes);
		else if (speaks)
			printf("{\"alloc\": %llu, \"free\": %llu}\n", (unsigned long long)alloc_ns,
				(unsigned long long)free_ns);
	}
	while (speaks && wait(NULL) > 0)
		;
	return 0;
}
