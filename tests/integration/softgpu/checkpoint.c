/*
 * A process is locked, its memory leaves, comes back on another GPU, and it goes on. The test
 * starts itself as that process. Two GPUs.
 */
#define ALL_CALLS
#include "cuda.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/checkpoint.h"

#define BYTES (8 * MIB)

struct pair {
	CUuuid from, to;
};
struct restore_args {
	const struct pair *pairs;
	unsigned count;
	char reserved[44];
	uint64_t reserved1;
};

/* Told "g" it adds one and says what it found, told "n" it has work for three seconds. */
static void worker(int fd)
{
	CUdeviceptr at, managed;
	unsigned found, long_ms = 3000;
	void *params[] = {&at}, *nap[] = {&long_ms};
	char go;

	begin();
	OK(cuMemAlloc_v2(&at, BYTES));
	OK(cuMemAllocManaged(&managed, 65536, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemsetD32_v2(at, 0, 1));
	OK(cuMemsetD32_v2(managed, 5, 1));
	OK(cuCtxSynchronize());
	CHECK_EQ(write(fd, "r", 1), 1);
	while (read(fd, &go, 1) == 1) {
		OK(launch(kernel(go == 'n' ? "nap" : "add"), NULL, go == 'n' ? nap : params));
		found = go == 'n' ? 0 : word_at(at);
		CHECK_EQ(*(unsigned *)managed, 5);
		CHECK_EQ(write(fd, &found, sizeof(found)), sizeof(found));
	}
	end();
	_exit(0);
}

/* Locks the process and waits for that, as a helper does. */
static void locker(int pid)
{
	OK(cuInit(0));
	while (cuCheckpointProcessLock(pid, NULL))
		;
	pause();
}

__attribute__((constructor)) static void play_role(void)
{
	const char *fd = getenv("CHECKPOINT_FD"), *pid = getenv("CHECKPOINT_PID");

	if (pid && !setjmp(test_exit))
		locker(atoi(pid));
	if (!fd)
		return;
	if (!setjmp(test_exit))
		worker(atoi(fd));
	_exit(1);
}

static int fd;
static pid_t pid;

static void start(void)
{
	char number[16], ready;
	int both[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, both));
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(both[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(number, sizeof(number), "%d", both[1]);
		setenv("CHECKPOINT_FD", number, 1);
		execl("/proc/self/exe", "worker", NULL);
		_exit(127);
	}
	close(both[1]);
	fd = both[0];
	CHECK_EQ(read(fd, &ready, 1), 1);
	OK(cuInit(0));
}

static void stop(void)
{
	int status;

	close(fd);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static unsigned told(const char *what)
{
	unsigned found = 0;

	CHECK_EQ(write(fd, what, 1), 1);
	CHECK_EQ(read(fd, &found, sizeof(found)), sizeof(found));
	return found;
}

static unsigned next(void)
{
	return told("g");
}

static size_t free_of(int device)
{
	CUcontext own;
	size_t bytes;

	OK(cuCtxCreate_v2(&own, 0, device));
	OK(cuMemGetInfo_v2(&bytes, NULL));
	OK(cuCtxDestroy_v2(own));
	return bytes;
}

TEST(memory_leaves_and_comes_back_on_another_gpu)
{
	struct restore_args args = {.count = 2};
	size_t before, without, there;
	struct pair pairs[2];
	unsigned found;
	int state;

	start();
	OK(cuDeviceGetUuid_v2(&pairs[0].from, 0));
	OK(cuDeviceGetUuid_v2(&pairs[0].to, 1));
	pairs[1] = (struct pair){pairs[0].to, pairs[0].from};
	args.pairs = pairs;
	CHECK_EQ(next(), 1);
	before = free_of(0);
	there = free_of(1);
	CHECK_EQ(cuCheckpointProcessCheckpoint(pid, NULL),
		CUDA_ERROR_ILLEGAL_STATE); /* not locked */
	OK(cuCheckpointProcessLock(pid, NULL));
	OK(cuCheckpointProcessGetState(pid, &state));
	CHECK_EQ(state, 1);
	CHECK_EQ(cuCheckpointProcessLock(pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
	/* The process's calls wait. */
	CHECK_EQ(write(fd, "g", 1), 1);
	OK(cuCheckpointProcessCheckpoint(pid, NULL));
	OK(cuCheckpointProcessGetState(pid, &state));
	CHECK_EQ(state, 2);
	without = free_of(0);
	CHECK(without >= before + BYTES);
	CHECK_EQ(cuCheckpointProcessUnlock(pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
	OK(cuCheckpointProcessRestore(pid, &args));
	CHECK_EQ(free_of(0), without);
	CHECK(free_of(1) + BYTES <= there);
	CHECK_EQ(recv(fd, &found, sizeof(found), MSG_DONTWAIT), -1); /* still locked */
	OK(cuCheckpointProcessUnlock(pid, NULL));
	CHECK_EQ(read(fd, &found, sizeof(found)), sizeof(found));
	CHECK_EQ(found, 2);
	CHECK_EQ(next(), 3);
	stop();
	CHECK_EQ(free_of(1), there);
}

TEST(a_checkpoint_that_does_not_fit_any_more_waits_for_room)
{
	CUcontext own;
	CUdeviceptr taken;

	start();
	OK(cuCheckpointProcessLock(pid, NULL));
	OK(cuCheckpointProcessCheckpoint(pid, NULL));
	OK(cuCtxCreate_v2(&own, 0, 0));
	OK(cuMemAlloc_v2(&taken, 58 * MIB));
	CHECK_EQ(cuCheckpointProcessRestore(pid, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree_v2(taken));
	OK(cuCheckpointProcessRestore(pid, NULL));
	OK(cuCheckpointProcessUnlock(pid, NULL));
	OK(cuCtxDestroy_v2(own));
	CHECK_EQ(next(), 1);
	stop();
}

/* cuda.h: reserved fields "must be zeroed", pairs "must contain every checkpointed GPU". */
TEST(wrong_arguments_are_refused_and_change_nothing)
{
	struct restore_args args = {.count = 1};
	unsigned char zero[64] = {0}, wrong[64] = {0};
	struct pair pair;
	int state;

	start();
	wrong[63] = 1;
	CHECK_EQ(cuCheckpointProcessLock(pid, (void *)wrong), CUDA_ERROR_INVALID_VALUE);
	OK(cuCheckpointProcessLock(pid, (void *)zero));
	CHECK_EQ(cuCheckpointProcessCheckpoint(pid, (void *)wrong), CUDA_ERROR_INVALID_VALUE);
	OK(cuCheckpointProcessCheckpoint(pid, (void *)zero));
	OK(cuDeviceGetUuid_v2(&pair.from, 1));
	pair.to = pair.from;
	CHECK_EQ(cuCheckpointProcessRestore(pid, &args), CUDA_ERROR_INVALID_VALUE); /* no pairs */
	args.pairs = &pair;
	CHECK_EQ(cuCheckpointProcessRestore(pid, &args), CUDA_ERROR_INVALID_VALUE); /* GPU 0 */
	OK(cuDeviceGetUuid_v2(&pair.from, 0));
	pair.to = pair.from;
	args.reserved[43] = 1;
	CHECK_EQ(cuCheckpointProcessRestore(pid, &args), CUDA_ERROR_INVALID_VALUE);
	args.reserved[43] = 0;
	OK(cuCheckpointProcessGetState(pid, &state));
	CHECK_EQ(state, 2);
	OK(cuCheckpointProcessRestore(pid, &args));
	CHECK_EQ(cuCheckpointProcessUnlock(pid, (void *)wrong), CUDA_ERROR_INVALID_VALUE);
	OK(cuCheckpointProcessUnlock(pid, (void *)zero));
	CHECK_EQ(next(), 1);
	stop();
}

static pid_t start_locker(void)
{
	char number[16];
	pid_t child;

	snprintf(number, sizeof(number), "%d", (int)pid);
	fflush(NULL);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("CHECKPOINT_PID", number, 1);
		execl("/proc/self/exe", "locker", NULL);
		_exit(127);
	}
	return child;
}

/* Returns once another process's lock is under way or done: only then this one's is refused. */
static void await_lock_of_another(void)
{
	struct {
		unsigned timeout_ms, zero[15];
	} soon = {.timeout_ms = 1};
	int r;

	do {
		r = cuCheckpointProcessLock(pid, &soon);
		if (!r)
			OK(cuCheckpointProcessUnlock(pid, NULL));
	} while (!r || r == CUDA_ERROR_NOT_READY);
	CHECK_EQ(r, CUDA_ERROR_ILLEGAL_STATE);
}

/* While the lock waits for the work the state is "running"; it would come all the same. */
TEST(tandems_helper_undoes_the_lock_of_one_that_was_killed_in_it)
{
	char target[16], back[16], parent[16];
	char *argv[] = {back, target, (char *)"0", (char *)"0", parent};
	pid_t child;

	start();
	snprintf(back, sizeof(back), "%d", TD_CHECKPOINT_BACK);
	snprintf(target, sizeof(target), "%d", (int)pid);
	snprintf(parent, sizeof(parent), "%d", (int)getppid());
	CHECK_EQ(next(), 1);
	CHECK_EQ(told("n"), 0);
	child = start_locker();
	await_lock_of_another();
	kill(child, SIGKILL);
	CHECK_EQ(waitpid(child, NULL, 0), child);
	CHECK_EQ(td_checkpoint_main(5, argv), TD_CHECKPOINT_UNLOCKED);
	CHECK_EQ(next(), 2);
	CHECK_EQ(td_checkpoint_main(5, argv), TD_CHECKPOINT_NOT_SAVED);
	stop();
}

TEST(what_is_no_process_of_the_gpu_is_refused)
{
	int state;

	OK(cuInit(0));
	CHECK_EQ(cuCheckpointProcessGetState(1, &state), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuCheckpointProcessLock(-1, NULL), CUDA_ERROR_INVALID_VALUE);
}
