/*
 * Starting and asking MPS servers. A server is the program nvidia-cuda-mps-server beside this one.
 * It reads from a pipe whose other end only this daemon has, so that none outlives the daemon. What
 * the servers do is known to the softgpu, which is asked for it.
 */
#include "softgpu/mps/servers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softgpu/server/client.h"

#define PPM      1000000u
#define START_MS 10000 /* a server that takes longer to start has failed */

struct mps_server *mps_server_of(struct mps_servers *servers, uid_t uid)
{
	for (unsigned i = 0; i < servers->count; i++)
		if (servers->server[i].uid == uid)
			return &servers->server[i];
	return NULL;
}

struct mps_server *mps_server_find(struct mps_servers *servers, pid_t pid)
{
	for (unsigned i = 0; i < servers->count; i++)
		if (servers->server[i].pid == pid)
			return &servers->server[i];
	return NULL;
}

/* The child's side of starting a server. Never returns. */
static void become_server(const struct mps_servers *servers, uid_t uid, int alive_fd, int ready_fd)
{
	char path[PATH_MAX], share[32], log[PATH_MAX + 16];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;
	int fd;

	path[n > 0 ? n : 0] = 0;
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash - path) + 32 > sizeof(path))
		_exit(127);
	strcpy(slash + 1, "nvidia-cuda-mps-server");
	snprintf(share, sizeof(share), "%u", (unsigned)(servers->percent * (PPM / 100) + 0.5));
	snprintf(log, sizeof(log), "%s/server.log", servers->log_directory);
	fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (dup2(alive_fd, 0) < 0 || dup2(ready_fd, 1) < 0 || (fd >= 0 && dup2(fd, 2) < 0))
		_exit(127);
	if (uid != geteuid() && setuid(uid) < 0)
		_exit(127);
	execl(path, "nvidia-cuda-mps-server", share, (char *)NULL);
	_exit(127);
}

/* Waits for the server's first line. True if it serves. */
static bool await_ready(int fd, char *why, size_t why_len)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	ssize_t n = poll(&poll_fd, 1, START_MS) == 1 ? read(fd, why, why_len - 1) : -1;

	if (n <= 0) {
		snprintf(why, why_len, "nvidia-cuda-mps-server did not start");
		return false;
	}
	why[n] = 0;
	why[strcspn(why, "\n")] = 0;
	return !strcmp(why, "ready");
}

struct mps_server *mps_server_start(
	struct mps_servers *servers, uid_t uid, char *why, size_t why_len)
{
	struct mps_server *server = &servers->server[servers->count];
	int alive[2], ready[2];

	if (servers->count == MPS_SERVERS_MAX || pipe2(alive, O_CLOEXEC) < 0) {
		snprintf(why, why_len, "there are too many servers");
		return NULL;
	}
	if (pipe2(ready, O_CLOEXEC) < 0) {
		snprintf(why, why_len, "%s", strerror(errno));
		close(alive[0]);
		close(alive[1]);
		return NULL;
	}
	*server = (struct mps_server){.pid = fork(), .uid = uid, .alive_fd = alive[1]};
	if (!server->pid)
		become_server(servers, uid, alive[0], ready[1]);
	close(alive[0]);
	close(ready[1]);
	if (server->pid > 0 && await_ready(ready[0], why, why_len)) {
		close(ready[0]);
		servers->count++;
		for (uint32_t i = 0; i < MPS_DEVICES_MAX; i++)
			if (servers->limits[i])
				(void)mps_server_set_limit(server, i, servers->limits[i]);
		return server;
	}
	close(ready[0]);
	close(alive[1]);
	if (server->pid > 0) {
		kill(server->pid, SIGKILL);
		waitpid(server->pid, NULL, 0);
	}
	return NULL;
}

static void forget(struct mps_servers *servers, struct mps_server *server)
{
	close(server->alive_fd);
	*server = servers->server[--servers->count];
}

void mps_server_end(struct mps_servers *servers, struct mps_server *server)
{
	pid_t pid = server->pid;

	forget(servers, server);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void mps_servers_reap(struct mps_servers *servers)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		struct mps_server *server = mps_server_find(servers, pid);

		if (server)
			forget(servers, server);
	}
}

static int ask(struct sg_msg *msg, void *extra, size_t extra_len, size_t *ret_len)
{
	char dir[PATH_MAX];
	struct sg_client *client;
	uint32_t gpus;
	int r;

	if (!sg_dir(dir, sizeof(dir)) || sg_client_new(dir, &client, &gpus))
		return -EIO;
	r = sg_client_request(client, msg, extra, extra_len, ret_len);
	sg_client_free(client);
	return r ? -EIO : msg->error ? -EINVAL : 0;
}

int mps_server_report(const struct mps_server *server, struct mps_report *ret)
{
	struct sg_msg msg = {.type = SG_MPS_STATE, .value = (uint64_t)server->pid};
	size_t len = 0;
	int r = ask(&msg, ret->clients, sizeof(ret->clients), &len);

	if (r)
		return r;
	ret->fault = msg.value == SG_MPS_FAULTED;
	ret->percent = (double)msg.value2 / (PPM / 100);
	ret->client_count = (uint32_t)(len / sizeof(ret->clients[0]));
	return 0;
}

int mps_server_set_percent(const struct mps_server *server, double percent)
{
	struct sg_msg msg = {.type = SG_MPS_SET,
		.value = (uint64_t)server->pid,
		.value2 = (uint64_t)(percent * (PPM / 100) + 0.5)};

	if (!msg.value2)
		msg.value2 = 1;
	return ask(&msg, NULL, 0, NULL);
}

int mps_server_set_limit(const struct mps_server *server, uint32_t device, uint64_t bytes)
{
	struct sg_msg msg = {.type = SG_MPS_LIMIT,
		.value = (uint64_t)server->pid,
		.value2 = device,
		.bytes = bytes};

	return ask(&msg, NULL, 0, NULL);
}

int mps_server_terminate(const struct mps_server *server, pid_t client)
{
	struct sg_msg msg = {.type = SG_MPS_TERMINATE,
		.value = (uint64_t)server->pid,
		.value2 = (uint64_t)client};

	return ask(&msg, NULL, 0, NULL);
}
