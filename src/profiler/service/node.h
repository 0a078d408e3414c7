/* Asks the daemon for a campaign, and starts its programs under tandem run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/layers.h"
#include "proto/proto.h"

struct td_err;

/* Sends a request and calls row() for each row of the answer. Returns 0, or -errno and err. */
int td_node_ask(const struct td_msg *request, void (*row)(const struct td_msg *msg, void *arg),
	void *arg, struct td_err *err);

/* Sets an option of the daemon, or of a job where `job` is not "". */
int td_node_set(const char *job, const char *key, const char *value, struct td_err *err);

/* Reads the value of an option of the daemon. */
int td_node_get(const char *key, char *ret, size_t len, struct td_err *err);

/* Reads the row of the job of that name. -ENOENT, with err unchanged: there is none. */
int td_node_job(const char *name, struct td_msg_job *ret, struct td_err *err);

/* Reads how many processes use GPUs under the daemon. */
int td_node_count_jobs(uint32_t *ret, struct td_err *err);

/* Reads the row of the GPU of that number. */
int td_node_gpu(uint32_t index, struct td_msg_gpu *ret, struct td_err *err);

#define TD_NODE_ARGUMENTS_MAX 240 /* the most arguments of a program's command */

struct td_started {
	pid_t pid; /* also its process group; 0: none */
	char name[64];
};

/*
 * Starts a program as the job `name`, with a share of the SMs in percent. layers: of the network
 * that it trains; NULL: it is a service. It ends with this program. The command has at most
 * TD_NODE_ARGUMENTS_MAX words.
 */
int td_node_start(struct td_started *ret, const char *name, uint32_t share, const uint32_t *layers,
	char *const *command, struct td_err *err);

/* Returns whether the program has ended. */
bool td_node_has_ended(const struct td_started *started);

/* Ends the program, and waits until it is gone and the daemon lists it no more. */
void td_node_stop(struct td_started *started);
