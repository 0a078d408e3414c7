/* What the user asks for in the environment of the program. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/parse.h"
#include "proto/words.h"

/* In the settings only, never on the wire. */
#define TD_BACKEND_AUTO TD_BACKEND_N

/*
 * What the environment asks for; read once, at load; class, weight and mem then follow what is set for the job (the agent's own). A value that makes no sense counts as not given, and such variables are kept
 * in `rejected` with their values, for the daemon's events.
 */
#define TD_REJECTED_MAX 16 /* as many as there are to be read */
struct td_settings {
	bool disabled;          /* TANDEM_DISABLE */
	char job[64], name[64]; /* TANDEM_JOB, TANDEM_NAME (the program's name) */
	uint8_t class;          /* TANDEM_CLASS, enum td_class */
	uint8_t upgrade;        /* TANDEM_UPGRADE: 1 + the class that it is to have; 0: none */
	uint32_t weight;        /* TANDEM_WEIGHT */
	uint32_t duty_ppm;      /* TANDEM_DUTY: the most of a GPU's time; 0: no bound */
	uint32_t
		slack_ppm; /* TANDEM_SLACK: by which its steps may take longer than alone; 0: not said */
	char mem[TD_LIMIT_TEXT]; /* TANDEM_MEM, else NVIDIA_GPU_MEMORY_LIMIT: a size or a share; empty: no limit */
	char mem_soft[TD_LIMIT_TEXT]; /* TANDEM_MEM_SOFT, likewise */
	char host_limit
		[32]; /* TANDEM_HOST_LIMIT: of what may lie on the host, a size or a share of it; empty: none */
	bool host_refuses; /* TANDEM_HOST_FULL=refuse: what could not leave the device is not allocated; else it stays there */
	uint8_t backend;            /* TANDEM_BACKEND, enum td_backend_kind or TD_BACKEND_AUTO */
	uint64_t drain_deadline_ns; /* TANDEM_DRAIN_DEADLINE */
	uint64_t
		idle_ns; /* TANDEM_IDLE: no submission for this long, and the device drained, is idle */
	uint64_t grace_ns; /* TANDEM_GRACE: how long a waiting program waits for a lost daemon */
	char socket[108];  /* TANDEM_SOCKET and so on; empty: none that fits and begins with / */
	char rejected[TD_REJECTED_MAX][96]; /* "NAME=value"; of a long value the beginning */
	unsigned rejected_count;
};
extern struct td_settings td_settings;
void td_settings_read(void);
/* The variable of that name makes no sense. */
void td_settings_reject(const char *name);
