/*
 * Runs independent tasks in several processes, because an experiment is many independent
 * simulations.
 *
 * A task is a function of its index and of data that its caller prepared before; it changes nothing
 * that another task reads. Its result is plain bytes, without pointers. So the results do not
 * depend on the number of processes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct td_err;

/*
 * Runs one task. Returns 0, or -errno with err. Between tasks td_workers_run() returns -EINTR if
 * td_sim_stop is set.
 */
typedef int (*td_task_fn)(void *arg, uint32_t index, void *ret, struct td_err *err);

/* Returns the number of CPUs that this process may use. */
uint32_t td_workers_default(void);

/*
 * Runs tasks 0 to count - 1 in `workers` processes; 1: in this process. They start in the order of
 * their indices. results has count x size zeroed bytes. Returns 0; the error of the first task that
 * failed, after which no further task begins; -EINTR if a signal stopped it; -ECHILD if a process
 * died.
 */
int td_workers_run(uint32_t workers, uint32_t count, td_task_fn fn, void *arg, void *results,
	size_t size, struct td_err *err);
