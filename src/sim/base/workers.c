/*
 * Forked processes take the indices of tasks from a counter in shared memory and leave the results
 * there; see workers.h. What was prepared before the fork is shared by copy on write. The processes
 * die with their parent.
 */
#include "sim/base/workers.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "sim/base/sim.h"

#define WORKERS_MAX 256u

struct task {
	bool done; /* the task has ended and returned r */
	int r;
	struct td_err err;
};

struct board {
	_Atomic uint32_t next;
	_Atomic bool failed;
	struct task tasks[];
};

uint32_t td_workers_default(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);

	return count < 1 ? 1 : (uint32_t)count < WORKERS_MAX ? (uint32_t)count : WORKERS_MAX;
}

static void do_tasks(
	struct board *board, uint32_t count, td_task_fn fn, void *arg, char *results, size_t size)
{
	uint32_t i;

	while (!board->failed && !td_sim_stop && (i = board->next++) < count) {
		struct task *task = &board->tasks[i];

		task->r = fn(arg, i, results + i * size, &task->err);
		task->done = true;
		if (task->r)
			board->failed = true;
	}
}

static uint32_t start(struct board *board, uint32_t workers, uint32_t count, td_task_fn fn,
	void *arg, char *results, size_t size, pid_t *pids)
{
	pid_t parent = getpid();
	uint32_t started = 0;

	for (uint32_t w = 0; w < workers; w++) {
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() == parent)
				do_tasks(board, count, fn, arg, results, size);
			_exit(0);
		}
		if (pid > 0)
			pids[started++] = pid;
	}
	return started;
}

/*
 * Waits for the workers. Returns whether one of them died. A signal sent to this process alone is
 * passed on to all of them.
 */
static bool wait_for(const pid_t *pids, uint32_t count)
{
	bool told = false, died = false;

	for (uint32_t w = 0; w < count;) {
		int status;
		pid_t pid = waitpid(pids[w], &status, 0);

		if (pid < 0 && errno == EINTR && td_sim_stop && !told) {
			for (uint32_t k = w; k < count; k++)
				kill(pids[k], SIGTERM);
			told = true;
		}
		if (pid < 0 && errno == EINTR)
			continue;
		died |= pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status);
		w++;
	}
	return died;
}

static int judge(const struct board *board, uint32_t count, bool died, struct td_err *err)
{
	bool whole = true;

	if (td_sim_stop)
		return td_err_set(err, -EINTR, "stopped by a signal");
	for (uint32_t i = 0; i < count; i++) {
		const struct task *task = &board->tasks[i];

		if (task->done && task->r) {
			if (err)
				*err = task->err;
			return task->r;
		}
		whole &= task->done;
	}
	if (whole && !died)
		return 0;
	return td_err_set(err, -ECHILD, "a worker process died: out of memory, or killed");
}

int td_workers_run(uint32_t workers, uint32_t count, td_task_fn fn, void *arg, void *results,
	size_t size, struct td_err *err)
{
	size_t head = (sizeof(struct board) + count * sizeof(struct task) + 63) & ~(size_t)63;
	size_t bytes = head + count * size;
	struct board *board =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[WORKERS_MAX];
	bool died = false;
	uint32_t started;
	char *shared;
	int r;

	if (board == MAP_FAILED)
		return td_err_set(err, -ENOMEM, "out of memory");
	shared = (char *)board + head;
	workers = workers < count ? workers : count;
	workers = workers < WORKERS_MAX ? workers : WORKERS_MAX;
	started = workers > 1 ? start(board, workers, count, fn, arg, shared, size, pids) : 0;
	if (started)
		died = wait_for(pids, started);
	else
		do_tasks(board, count, fn, arg, shared, size);
	r = judge(board, count, died, err);
	if (!r)
		memcpy(results, shared, count * size);
	munmap(board, bytes);
	return r;
}
