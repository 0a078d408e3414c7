/* The settings that a user gives in the program's environment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/parse.h"
#include "proto/layers.h"
#include "proto/words.h"

/* A value of td_settings.backend only; it is never sent to the daemon. */
#define TD_BACKEND_AUTO TD_BACKEND_N

/*
 * The environment's settings, read once at load. Later, class, weight and mem follow what is set
 * for the job; the agent writes them. An invalid value counts as not given; `rejected` keeps the
 * variable with its value for the daemon's events.
 */
#define TD_REJECTED_MAX 17 /* the number of variables that are read */
struct td_settings {
	bool disabled;          /* TANDEM_DISABLE */
	char job[64], name[64]; /* TANDEM_JOB, TANDEM_NAME (the program's name) */
	uint8_t class;          /* TANDEM_CLASS, enum td_class */
	uint8_t upgrade;        /* TANDEM_UPGRADE: 1 + the class after the upgrade; 0: none */
	uint32_t weight;        /* TANDEM_WEIGHT */
	uint32_t instance;      /* TANDEM_INSTANCE, by the supervisor; 0: none */
	uint32_t sm_share_ppm;  /* CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; 0: none */
	/* The same share if it limits all contexts of the process together; 0: each by itself. */
	uint32_t sm_share_most_ppm;
	uint32_t duty_ppm; /* TANDEM_DUTY: the largest share of a GPU's time; 0: no limit */
	/* TANDEM_SLACK: how much longer a step may take than without other programs; 0: not set. */
	uint32_t slack_ppm;
	uint32_t batch; /* batch size set with `tandem set`, kept for the next daemon; 0: none */
	/*
	 * TANDEM_LAYERS: the numbers of layers, by kind, of the network that it trains; all 0: not
	 * given.
	 */
	uint32_t layers[TD_LAYER_KINDS];
	/*
	 * TANDEM_MEM, else NVIDIA_GPU_MEMORY_LIMIT: bytes or a share of the GPU; empty: no limit.
	 */
	char mem[TD_LIMIT_TEXT];
	/* TANDEM_MEM_SOFT: bytes or a share of the GPU; empty: no limit. */
	char mem_soft[TD_LIMIT_TEXT];
	/* TANDEM_HOST_LIMIT: the most host memory, as bytes or a share; empty: no limit. */
	char host_limit[32];
	/*
	 * TANDEM_HOST_FULL=refuse: an allocation for which the host has no room is refused.
	 * Otherwise it is made, and stays on the device.
	 */
	bool host_refuses;
	uint8_t backend;            /* TANDEM_BACKEND, enum td_backend_kind or TD_BACKEND_AUTO */
	uint64_t drain_deadline_ns; /* TANDEM_DRAIN_DEADLINE */
	/*
	 * TANDEM_IDLE: the process is idle after this time without a submission, once the device is
	 * drained.
	 */
	uint64_t idle_ns;
	uint64_t grace_ns; /* TANDEM_GRACE: how long a closed gate outlives a lost daemon */
	char socket[108];  /* TANDEM_SOCKET or the default path; empty: none is usable */
	char rejected[TD_REJECTED_MAX][96]; /* "NAME=value", cut off if it is too long */
	unsigned rejected_count;
};
extern struct td_settings td_settings;
void td_settings_read(void);
/* Notes the environment variable of that name as having an invalid value. */
void td_settings_reject(const char *name);

/*
 * Is the environment's percentage one for each context (TD_SHARE_PER_CONTEXT=1)? Then a further
 * context may have more. Otherwise it limits the process.
 */
#define TD_SHARE_PER_CONTEXT "CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING"
bool td_settings_share_is_per_context(void);
