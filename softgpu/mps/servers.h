/* The MPS servers of one control daemon: processes of their own, one per user. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MPS_SERVERS_MAX 16
#define MPS_CLIENTS_MAX 512
#define MPS_DEVICES_MAX 64

struct mps_server {
	pid_t pid;
	uid_t uid;
	int alive_fd; /* the server ends when this is closed */
};

struct mps_servers {
	struct mps_server server[MPS_SERVERS_MAX];
	unsigned count;
	/* The settings of servers that start from now on. */
	double percent;
	uint64_t limits[MPS_DEVICES_MAX]; /* memory limits in bytes; 0: none */
	const char *log_directory;
	char softgpu[4096]; /* the directory of the softgpu server */
};

/* The server of that user, or NULL. */
struct mps_server *mps_server_of(struct mps_servers *servers, uid_t uid);
struct mps_server *mps_server_find(struct mps_servers *servers, pid_t pid);
/* Starts one and waits until it serves. Returns NULL with the reason in why. */
struct mps_server *mps_server_start(
	struct mps_servers *servers, uid_t uid, char *why, size_t why_len);
/* Ends it at once, whatever its clients do. */
void mps_server_end(struct mps_servers *servers, struct mps_server *server);
/* Forgets those that have ended by themselves. */
void mps_servers_reap(struct mps_servers *servers);

struct mps_report {
	bool fault;
	double percent;
	uint32_t clients[MPS_CLIENTS_MAX], client_count;
};
/* The following ask the softgpu. 0, -EINVAL if there is no such server or client, or -EIO. */
int mps_server_report(const struct mps_server *server, struct mps_report *ret);
int mps_server_set_percent(const struct mps_server *server, double percent);
/* -EINVAL also if the server has no such device. */
int mps_server_set_limit(const struct mps_server *server, uint32_t device, uint64_t bytes);
int mps_server_terminate(const struct mps_server *server, pid_t client);
