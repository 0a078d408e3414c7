/*
 * The commands of nvidia-cuda-mps-control, as text. They are those of NVIDIA's program that
 * concern what is modelled here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* X(name, the names of its arguments) */
#define SG_MPS_COMMANDS(X)                                                                         \
	X(get_server_list, "")                                                                     \
	X(get_server_status, "PID")                                                                \
	X(start_server, "-uid UID")                                                                \
	X(shutdown_server, "PID [-f]")                                                             \
	X(get_client_list, "PID")                                                                  \
	X(terminate_client, "SERVER CLIENT")                                                       \
	X(get_default_active_thread_percentage, "")                                                \
	X(set_default_active_thread_percentage, "PERCENT")                                         \
	X(get_active_thread_percentage, "PID")                                                     \
	X(set_active_thread_percentage, "PID PERCENT")                                             \
	X(get_default_device_pinned_mem_limit, "DEVICE")                                           \
	X(set_default_device_pinned_mem_limit, "DEVICE SIZE")                                      \
	X(set_device_pinned_mem_limit, "PID DEVICE SIZE")                                          \
	X(quit, "[-t SECONDS]")                                                                    \
	X(help, "")

enum sg_mps_verb {
#define X(name, arguments) SG_MPS_VERB_##name,
	SG_MPS_COMMANDS(X)
#undef X
		SG_MPS_VERB_N,
};

struct sg_mps_command {
	enum sg_mps_verb verb;
	pid_t server, client;
	uid_t uid;
	double percent;   /* more than 0, at most 100 */
	uint32_t device;  /* below 64, as clients number their devices */
	uint64_t bytes;   /* more than 0 */
	uint32_t seconds; /* the argument of quit -t */
	bool force;       /* set by shutdown_server -f and quit -t */
};

/* Reads one line. 0, or -EINVAL with what is wrong in error. */
int sg_mps_command_parse(
	const char *line, struct sg_mps_command *ret, char *error, size_t error_len);
/* The commands with their arguments, one a line; returns buf. */
char *sg_mps_command_help(char *buf, size_t len);
/* Reads a percentage. False if it is none. */
bool sg_mps_parse_percent(const char *text, double *ret);
