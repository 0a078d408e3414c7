/* The settings that a user gives in the program's environment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/parse.h"
#include "proto/layers.h"
#include "proto/words.h"

/* A value of the settings only, never sent to the daemon. */
#define TD_BACKEND_AUTO TD_BACKEND_N

/*
 * The environment's settings, read once at load. Later, class, weight and mem follow what is set
 * for the job; the agent writes them. An invalid value counts as not given; `rejected` keeps the
 * variable with its value for the daemon's events.
 */
#define TD_REJECTED_MAX 17 /* as many as there are to be read */
struct td_settings {
	bool disabled;          /* TANDEM_DISABLE */
	char job[64], name[64]; /* TANDEM_JOB, TANDEM_NAME (the program's name) */
	uint8_t class;          /* TANDEM_CLASS, enum td_class */
	uint8_t upgrade;        /* TANDEM_UPGRADE: 1 + the class that it is to have; 0: none */
	uint32_t weight;        /* TANDEM_WEIGHT */
	uint32_t sm_share_ppm;  /* CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; 0: none */
	uint32_t duty_ppm;      /* TANDEM_DUTY: the most of a GPU's time; 0: no bound */
	/* TANDEM_SLACK: how much longer its steps may take than alone; 0: not set. */
	uint32_t slack_ppm;
	uint32_t batch; /* set by hand for a service: told to the next daemon; 0: none */
	/* TANDEM_LAYERS: of the network that it trains; all 0: not told. */
	uint32_t layers[TD_LAYER_KINDS];
	/* TANDEM_MEM, else NVIDIA_GPU_MEMORY_LIMIT: a size or a share; empty: no limit. */
	char mem[TD_LIMIT_TEXT];
	/* TANDEM_MEM_SOFT: a size or a share; empty: no limit. */
	char mem_soft[TD_LIMIT_TEXT];
	/* TANDEM_HOST_LIMIT: the most memory on the host, a size or a share; empty: no limit. */
	char host_limit[32];
	/*
	 * TANDEM_HOST_FULL=refuse: memory that could not leave the device is refused; otherwise it
	 * is allocated and stays there.
	 */
	bool host_refuses;
	uint8_t backend;            /* TANDEM_BACKEND, enum td_backend_kind or TD_BACKEND_AUTO */
	uint64_t drain_deadline_ns; /* TANDEM_DRAIN_DEADLINE */
	/*
	 * TANDEM_IDLE: the process is idle after this time without a submission, once the device is
	 * drained.
	 */
	uint64_t idle_ns;
	uint64_t grace_ns; /* TANDEM_GRACE: how long a waiting program waits for a lost daemon */
	char socket[108];  /* TANDEM_SOCKET and so on; empty: none that fits and begins with / */
	char rejected[TD_REJECTED_MAX][96]; /* "NAME=value"; of a long value the beginning */
	unsigned rejected_count;
};
extern struct td_settings td_settings;
void td_settings_read(void);
/* Notes the variable of that name as invalid. */
void td_settings_reject(const char *name);
