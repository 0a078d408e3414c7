/*
 * The same work in several processes: experiments are many simulations that know nothing of each other.
 *
 * A task is a function of its index and of what its caller prepared before; it changes nothing that another task reads. Its result is plain bytes, without pointers. So results are the same however
 * many processes there are, and whoever does what.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct td_err;

/* 0, or -errno with err. Returns -EINTR, without being asked, where td_sim_stop is set between tasks. */
typedef int (*td_task_fn)(void *arg, uint32_t index, void *ret, struct td_err *err);

/* CPUs that this process may use. */
uint32_t td_workers_default(void);

/*
 * Runs task 0 to count - 1 in so many processes (1: in this one), in the order of their indices as far as they begin; results: count x size bytes, zeroed before. 0; the error of the first
 * index that has one, after which no further task begins; -EINTR: stopped; -ECHILD: a process died.
 */
int td_workers_run(uint32_t workers, uint32_t count, td_task_fn fn, void *arg, void *results,
	size_t size, struct td_err *err);
