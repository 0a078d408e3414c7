/*
 * Programs for limits.py, one per mode; run under `softgpu run -- tandem run --mem`. Each prints one line of JSON.
 *
 *   race N ROUNDS LARGEST   N processes allocate and free blocks of random sizes up to LARGEST bytes, and keep a common account of what they
 *                           have together: it counts a block after it was had and until before it is freed, so it never says too much
 *   threads N BLOCK         another process takes all that there is; then N threads use the GPU for the first time, and each wants a block at once
 *   fill BLOCK              for each line on stdin: allocates blocks until one is refused; until end of file
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/types.h"

CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);

#define BLOCKS 8

static struct account {
	_Atomic uint64_t bytes, peak_bytes, granted, refused, failed;
} * account;

static void use_gpu(void)
{
	CUdevice device;
	CUcontext context;

	if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
		cuCtxSetCurrent(context)) {
		fprintf(stderr, "limit_test: no GPU\n");
		exit(1);
	}
}

static void count(uint64_t bytes)
{
	uint64_t now = atomic_fetch_add(&account->bytes, bytes) + bytes,
		 peak = atomic_load(&account->peak_bytes);

	while (now > peak && !atomic_compare_exchange_weak(&account->peak_bytes, &peak, now))
		;
}

static void racer(unsigned seed, unsigned rounds, size_t largest)
{
	struct {
		CUdeviceptr address;
		size_t bytes;
	} blocks[BLOCKS] = {{0}};

	use_gpu();
	for (unsigned i = 0; i < rounds; i++) {
		unsigned b = (unsigned)rand_r(&seed) % BLOCKS;
		CUresult r;

		if (blocks[b].bytes) {
			atomic_fetch_sub(&account->bytes, blocks[b].bytes);
			if (cuMemFree_v2(blocks[b].address))
				atomic_fetch_add(&account->failed, 1);
			blocks[b].bytes = 0;
			continue;
		}
		blocks[b].bytes = ((size_t)rand_r(&seed) % (largest / 4096) + 1) * 4096;
		r = cuMemAlloc_v2(&blocks[b].address, blocks[b].bytes);
		if (!r) {
			count(blocks[b].bytes);
			atomic_fetch_add(&account->granted, 1);
			continue;
		}
		blocks[b].bytes = 0;
		atomic_fetch_add(
			r == CUDA_ERROR_OUT_OF_MEMORY ? &account->refused : &account->failed, 1);
	}
	/* What is left goes with the process. */
	for (unsigned b = 0; b < BLOCKS; b++)
		atomic_fetch_sub(&account->bytes, blocks[b].bytes);
	_exit(0);
}

static int race(unsigned processes, unsigned rounds, size_t largest)
{
	unsigned bad = 0;
	int status;

	account = mmap(
		NULL, sizeof(*account), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (account == MAP_FAILED)
		return 1;
	for (unsigned i = 0; i < processes; i++)
		if (fork() == 0)
			racer(i + 1, rounds, largest);
	while (wait(&status) > 0)
		bad += status != 0;
	printf("{\"peak_bytes\": %llu, \"granted\": %llu, \"refused\": %llu, \"failed\": %llu}\n",
		(unsigned long long)account->peak_bytes, (unsigned long long)account->granted,
		(unsigned long long)account->refused, (unsigned long long)account->failed + bad);
	return 0;
}

static pthread_barrier_t start_line;
static size_t thread_block;

static void *want_one(void *arg)
{
	CUdeviceptr address;
	CUcontext context;

	(void)arg;
	pthread_barrier_wait(&start_line);
	if (cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return NULL;
	return (void *)(intptr_t)(cuMemAlloc_v2(&address, thread_block) == CUDA_SUCCESS);
}

/* Until it is killed it keeps what it has. */
static void take_all(int ready, size_t block)
{
	CUdeviceptr address;

	use_gpu();
	while (!cuMemAlloc_v2(&address, block))
		;
	if (write(ready, "", 1) == 1)
		pause();
	_exit(1);
}

static int threads(unsigned count, size_t block)
{
	pthread_t ids[64];
	unsigned granted = 0;
	int ready[2];
	pid_t other;
	char byte;

	if (count > 64 || pipe(ready) || (other = fork()) < 0)
		return 1;
	if (!other)
		take_all(ready[1], block);
	if (read(ready[0], &byte, 1) != 1 || cuInit(0))
		return 1;
	thread_block = block;
	pthread_barrier_init(&start_line, NULL, count);
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&ids[i], NULL, want_one, NULL))
			return 1;
	for (unsigned i = 0; i < count; i++) {
		void *got;

		pthread_join(ids[i], &got);
		granted += got != NULL;
	}
	printf("{\"granted\": %u}\n", granted);
	kill(other, SIGKILL);
	return waitpid(other, NULL, 0) != other;
}

static int fill(size_t block)
{
	unsigned long long had = 0;
	size_t free_bytes, total_bytes;
	char line[16];

	use_gpu();
	while (fgets(line, sizeof(line), stdin)) {
		CUdeviceptr address;
		CUresult r;

		while (!(r = cuMemAlloc_v2(&address, block)))
			had += block;
		if (cuMemGetInfo_v2(&free_bytes, &total_bytes))
			return 1;
		printf("{\"result\": %d, \"bytes\": %llu, \"free\": %zu, \"total\": %zu}\n", (int)r,
			had, free_bytes, total_bytes);
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "race"))
		return race(
			(unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), (size_t)atoll(argv[4]));
	if (argc == 4 && !strcmp(argv[1], "threads"))
		return threads((unsigned)atoi(argv[2]), (size_t)atoll(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "fill"))
		return fill((size_t)atoll(argv[2]));
	fprintf(stderr, "usage: limit_test race N ROUNDS LARGEST | threads N BLOCK | fill BLOCK\n");
	return 2;
}
