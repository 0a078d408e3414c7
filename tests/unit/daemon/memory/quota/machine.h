/*
 * The interface between a program of the model (agent.c beside this: libtandem's own code, loaded
 * once for each program) and its world (test_node_quota.c): its clock, its GPUs, its connection to
 * the daemon, and the moments at which its threads give way to others.
 *
 * Threads are coroutines. One runs until it waits, or until quota_preempt lets another go on. So
 * the order of events between two locks is as random as the seed, and repeats with it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct td_msg;

#define QUOTA_GPUS 2

/* The kind of memory, and its place. */
enum quota_memory {
	QUOTA_ON_DEVICE,
	QUOTA_OF_CONTEXT, /* on the device, and no limit is about it */
	QUOTA_PAGED,      /* wherever the driver has put it: takes nothing that others could have */
};

/* The next action of a thread. */
enum quota_what {
	QUOTA_USE,      /* the GPU, from now on: a context is made if there is none */
	QUOTA_ALLOCATE, /* by the backend */
	QUOTA_CREATE,   /* memory of the program's own, which cannot leave the GPU */
	QUOTA_MANAGE,   /* memory that the driver pages */
	QUOTA_FREE,     /* one of them, the index-th that it has */
	QUOTA_LAUNCH,   /* work that takes so long */
	QUOTA_SLEEP,
	QUOTA_END, /* of the thread */
};

struct quota_op {
	enum quota_what what;
	int gpu;
	uint64_t bytes, ns;
	unsigned index;
};

/* The world, as a program sees it. `program`: which it is. */
struct quota_world {
	uint64_t (*now_ns)(void);
	/*
	 * Gives way until the time has come or, where a word is given, until it is no longer
	 * `value`.
	 */
	void (*wait)(uint64_t until_ns, const _Atomic uint32_t *word, uint32_t value);
	/* The agent: until then, or a message can be read, or somebody has rung. */
	void (*listen)(int program, uint64_t until_ns);
	void (*ring)(int program);
	void (*preempt)(void);
	/* The GPU whose context is current for the running thread, -1: none. */
	int *(*current)(void);
	/* 0; or out of memory. */
	int (*take)(int program, int gpu, uint64_t bytes, enum quota_memory memory);
	void (*give)(int program, int gpu, uint64_t bytes, enum quota_memory memory);
	uint64_t (*used)(int gpu);
	uint64_t gpu_bytes;
	/* The connection. 0 or -errno. */
	int (*connect)(int program);
	void (*hang_up)(int program);
	int (*send)(int program, const struct td_msg *msg);
	int (*receive)(int program, struct td_msg *ret);
	/* The daemon's page is (not) mapped from here on. */
	void (*map)(int program, bool mapped);
	void (*spawn)(int program, void *(*run)(void *));
	/* Returns the thread's next action. has: how many allocations it has. */
	struct quota_op (*next)(int program, unsigned thread, unsigned has);
	/* Memory that its work uses was not there, or another rule is broken. */
	void (*broken)(int program, const char *what);
};

struct quota_settings {
	const char *job;
	uint8_t class, backend;
	const char *mem, *mem_soft;
	bool refuses; /* TANDEM_HOST_FULL=refuse */
};

/* A program, as the world sees it. */
struct quota_program {
	void (*begin)(const struct quota_world *world, int program,
		const struct quota_settings *settings);
	void (*thread)(unsigned thread);
	/* The daemon writes into the page. */
	void (*page)(uint32_t word);
	void (*others)(uint32_t slot, uint64_t bytes);
	uint32_t (*word)(void);
	/* Until when its work takes. */
	uint64_t (*busy_ns)(void);
};
