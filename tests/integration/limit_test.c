/*
 * Programs for limits.py, one per mode; run under `softgpu run -- tandem run --mem`. Each prints
 * one line of JSON.
 *
 *   race KIND N THREADS ROUNDS LARGEST
 *                    N processes of so many threads allocate and free blocks of random sizes up to
 *                    LARGEST bytes, and keep a common account of their sum. It counts a block after
 *                    it was allocated and until before it is freed, so it never says too much.
 *                    KIND: alloc, managed, or async (a stream per thread, a pool per process)
 *   threads N BLOCK  another process takes all that there is; then N threads use the GPU for the
 *                    first time, and each wants a block at once
 *   fill BLOCK       for each line on stdin: allocates blocks until one is refused; for the line
 *                    "ask" only one that is larger than all that it may have: the daemon's answer
 *                    comes with the limits of that moment
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
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags);
CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);

#define BLOCKS      8
#define THREADS_MAX 64

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

/* The settings of a racing process, and each thread's allocations. */
static struct race {
	enum { ALLOC, MANAGED, ASYNC, KINDS } kind;
	unsigned processes, threads, rounds;
	size_t largest;
} race;

static const char *const kinds[KINDS] = {"alloc", "managed", "async"};

struct racer {
	pthread_t thread;
	CUcontext context;
	CUstream stream;
	unsigned seed;
	struct {
		CUdeviceptr address;
		size_t bytes;
	} blocks[BLOCKS];
};

static CUresult take(struct racer *r, unsigned b)
{
	CUdeviceptr *address = &r->blocks[b].address;
	size_t bytes = r->blocks[b].bytes;

	switch (race.kind) {
	case MANAGED: return cuMemAllocManaged(address, bytes, CU_MEM_ATTACH_GLOBAL);
	case ASYNC: return cuMemAllocAsync(address, bytes, r->stream);
	default: return cuMemAlloc_v2(address, bytes);
	}
}

static CUresult give_back(const struct racer *r, unsigned b)
{
	return race.kind == ASYNC ? cuMemFreeAsync(r->blocks[b].address, r->stream)
				  : cuMemFree_v2(r->blocks[b].address);
}

static void step(struct racer *racer)
{
	unsigned b = (unsigned)rand_r(&racer->seed) % BLOCKS;
	CUresult r;

	if (racer->blocks[b].bytes) {
		atomic_fetch_sub(&account->bytes, racer->blocks[b].bytes);
		if (give_back(racer, b))
			atomic_fetch_add(&account->failed, 1);
		racer->blocks[b].bytes = 0;
		return;
	}
	/*
	 * A pool grows by 2 MiB at least: smaller blocks would leave it memory that this account
	 * does not see.
	 */
	racer->blocks[b].bytes = race.largest;
	if (race.kind != ASYNC)
		racer->blocks[b].bytes =
			((size_t)rand_r(&racer->seed) % (race.largest / 4096) + 1) * 4096;
	r = take(racer, b);
	if (!r) {
		count(racer->blocks[b].bytes);
		atomic_fetch_add(&account->granted, 1);
		return;
	}
	racer->blocks[b].bytes = 0;
	atomic_fetch_add(r == CUDA_ERROR_OUT_OF_MEMORY ? &account->refused : &account->failed, 1);
}

static void *race_thread(void *arg)
{
	struct racer *racer = arg;

	if (cuCtxSetCurrent(racer->context) || cuStreamCreate(&racer->stream, 1))
		atomic_fetch_add(&account->failed, 1);
	for (unsigned i = 0; i < race.rounds; i++)
		step(racer);
	return NULL;
}

static void race_process(unsigned number)
{
	static struct racer racers[THREADS_MAX];
	unsigned i;

	use_gpu();
	for (i = 0; i < race.threads; i++) {
		racers[i].seed = number * race.threads + i + 1;
		if (cuDevicePrimaryCtxRetain(&racers[i].context, 0) ||
			pthread_create(&racers[i].thread, NULL, race_thread, &racers[i]))
			_exit(1);
	}
	for (i = 0; i < race.threads; i++)
		pthread_join(racers[i].thread, NULL);
	/* The rest ends with the process. */
	for (i = 0; i < race.threads; i++)
		for (unsigned b = 0; b < BLOCKS; b++)
			atomic_fetch_sub(&account->bytes, racers[i].blocks[b].bytes);
	_exit(0);
}

static int run_race(char **argv)
{
	unsigned bad = 0, kind = 0;
	int status;

	while (kind < KINDS && strcmp(argv[0], kinds[kind]))
		kind++;
	race.kind = kind;
	race.processes = (unsigned)atoi(argv[1]);
	race.threads = (unsigned)atoi(argv[2]);
	race.rounds = (unsigned)atoi(argv[3]);
	race.largest = (size_t)atoll(argv[4]);
	account = mmap(
		NULL, sizeof(*account), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (kind == KINDS || race.threads > THREADS_MAX || account == MAP_FAILED)
		return 1;
	for (unsigned i = 0; i < race.processes; i++)
		if (fork() == 0)
			race_process(i);
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
	pthread_t ids[THREADS_MAX];
	unsigned granted = 0;
	int ready[2];
	pid_t other;
	char byte;

	if (count > THREADS_MAX || pipe(ready) || (other = fork()) < 0)
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

		if (cuMemGetInfo_v2(&free_bytes, &total_bytes))
			return 1;
		if (!strcmp(line, "ask\n"))
			r = cuMemAlloc_v2(&address, total_bytes + block);
		else
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
	if (argc == 7 && !strcmp(argv[1], "race"))
		return run_race(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "threads"))
		return threads((unsigned)atoi(argv[2]), (size_t)atoll(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "fill"))
		return fill((size_t)atoll(argv[2]));
	fprintf(stderr, "usage: limit_test race alloc|managed|async N THREADS ROUNDS LARGEST | "
			"threads N BLOCK | fill BLOCK\n");
	return 2;
}
