/*
 * A program that does everything to its memory that a CUDA program may do, at random but
 * repeatably, and checks each word of it.
 *
 *   stress_worker SEED TURNS PROGRESS KINDS    run under `softgpu run -- tandem run`
 *
 * It has threads, each with blocks of its own (block.h) on one of the GPUs, and processes, forked
 * before the GPU is used or while it is. Exit status 0: all was right; 3: a wrong word; 4: a child
 * failed; 5: a call failed. PROGRESS, a file of one page, counts the actions of the program and all
 * its children, so that a watcher sees whether anything goes on.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "block.h"
#include "calls.h"

#define THREADS_MAX 3

/* As stress.py reads it. */
struct progress {
	_Atomic uint64_t turns, verified_bytes, refused, launches, processes, forks;
};

static struct progress *progress;
static const char *self, *progress_path, *kinds;

struct thread {
	pthread_t id;
	struct lane lane;
	uint64_t seed;
	uint32_t turns;
	bool is_main, is_alone;
};

static void fail(const char *what)
{
	perror(what);
	_exit(5);
}

/* A while on the CPU alone: the time in which others may have the GPU. */
static void pause_ms(uint32_t ms)
{
	struct timespec t = {0, ms * 1000000l};

	nanosleep(&t, NULL);
}

static void await_child(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid");
	if (status) {
		fprintf(stderr, "stress: child %d ended with status %#x\n", (int)pid, status);
		_exit(4);
	}
}

/* While the GPU is in use: a child that leaves it alone, or becomes another such program. */
static void fork_beside(struct lane *lane)
{
	char seed[24];
	bool becomes = lane_below(lane, 2);
	pid_t pid;

	snprintf(seed, sizeof(seed), "%u", lane_below(lane, UINT32_MAX));
	atomic_fetch_add(&progress->forks, 1);
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid) {
		if (becomes)
			execl(self, self, seed, "6", progress_path, kinds, (char *)NULL);
		_exit(becomes ? 5 : 0);
	}
	await_child(pid);
}

static void turn(struct thread *t, uint32_t turns_left)
{
	lane_turn(&t->lane);
	if (lane_below(&t->lane, 8) == 0)
		pause_ms(lane_below(&t->lane, 20));
	if (t->is_main && turns_left > 8 && lane_below(&t->lane, 60) == 0)
		fork_beside(&t->lane);
	atomic_fetch_add(&progress->turns, 1);
}

/*
 * On a GPU that others have filled there is no room for one more context. That is no error, and
 * after a while it is given up.
 */
static bool find_context(CUdevice device, CUcontext *ret)
{
	for (uint32_t tries = 0; tries < 200; tries++) {
		CUresult r = cuDevicePrimaryCtxRetain(ret, device);

		if (!r)
			return true;
		if (r != CUDA_ERROR_OUT_OF_MEMORY)
			must_at(r, "a context", __LINE__);
		atomic_fetch_add(&progress->refused, 1);
		atomic_fetch_add(&progress->turns, 1);
		pause_ms(5);
	}
	return false;
}

static void *run(void *arg)
{
	struct thread *t = arg;
	CUcontext context;
	CUdevice device;
	uint64_t choice = t->seed;
	int count;

	MUST(cuDeviceGetCount(&count));
	MUST(cuDeviceGet(&device, (int)((choice >> 20) % (unsigned)count)));
	if (!find_context(device, &context))
		return NULL;
	MUST(cuCtxSetCurrent(context));
	lane_init(&t->lane, device, kinds, choice);
	t->lane.is_alone = t->is_alone;
	for (uint32_t k = t->turns; k; k--)
		turn(t, k);
	lane_verify(&t->lane);
	lane_deinit(&t->lane);
	atomic_fetch_add(&progress->verified_bytes, t->lane.verified_bytes);
	atomic_fetch_add(&progress->refused, t->lane.refused);
	atomic_fetch_add(&progress->launches, t->lane.launches);
	return NULL;
}

static void work(uint64_t seed, uint32_t turns)
{
	static struct thread threads[THREADS_MAX];
	uint32_t count = 1 + (uint32_t)(seed >> 8) % THREADS_MAX;

	atomic_fetch_add(&progress->processes, 1);
	MUST(cuInit(0));
	for (uint32_t i = 0; i < count; i++) {
		threads[i] = (struct thread){.seed = (seed + i) * 0x9e3779b97f4a7c15ull,
			.turns = turns / count + 1,
			.is_main = i == 0,
			.is_alone = count == 1};
		if (i && pthread_create(&threads[i].id, NULL, run, &threads[i]))
			fail("pthread_create");
	}
	run(&threads[0]);
	for (uint32_t i = 1; i < count; i++)
		pthread_join(threads[i].id, NULL);
}

static void map_progress(void)
{
	int fd = open(progress_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, 4096))
		fail(progress_path);
	progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (progress == MAP_FAILED)
		fail(progress_path);
	close(fd);
}

int main(int argc, char **argv)
{
	uint64_t seed;
	uint32_t kid_count;
	pid_t pids[2];

	if (argc != 5 || !*argv[4] || strspn(argv[4], BLOCK_KINDS) != strlen(argv[4])) {
		fprintf(stderr, "usage: stress_worker SEED TURNS PROGRESS KINDS\n");
		return 2;
	}
	self = "/proc/self/exe";
	seed = strtoull(argv[1], NULL, 10);
	progress_path = argv[3];
	kinds = argv[4];
	map_progress();
	kid_count = seed % 5 < 3 ? 0 : (uint32_t)(seed % 5) - 2;
	for (uint32_t k = 0; k < kid_count; k++) {
		pids[k] = fork();
		if (pids[k] < 0)
			fail("fork");
		if (!pids[k]) {
			work(seed + 1 + k, (uint32_t)atoi(argv[2]) / 2);
			return 0;
		}
	}
	work(seed, (uint32_t)atoi(argv[2]));
	for (uint32_t k = 0; k < kid_count; k++)
		await_child(pids[k]);
	return 0;
}
