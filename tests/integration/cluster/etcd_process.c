/* This file implements etcd_process.h. */
#include "etcd_process.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "test.h"

static int free_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!bind(fd, (struct sockaddr *)&address, sizeof(address)));
	CHECK(!getsockname(fd, (struct sockaddr *)&address, &length));
	close(fd);
	return ntohs(address.sin_port);
}

static const char *find_etcd(void)
{
	static char path[512];
	const char *set = getenv("TANDEM_ETCD");
	FILE *found;

	if (set)
		return set;
	found = popen("command -v etcd", "r");
	if (found && fgets(path, sizeof(path), found))
		path[strcspn(path, "\n")] = 0;
	if (found)
		pclose(found);
	return *path ? path : NULL;
}

bool etcd_make(struct etcd_process *etcd)
{
	*etcd = (struct etcd_process){.program = find_etcd()};
	if (!etcd->program || access(etcd->program, X_OK))
		return false;
	strcpy(etcd->folder, "/tmp/tandem-etcd-XXXXXX");
	CHECK(mkdtemp(etcd->folder));
	etcd->port = free_port();
	etcd->peer_port = free_port();
	snprintf(etcd->url, sizeof(etcd->url), "http://127.0.0.1:%d", etcd->port);
	return true;
}

static bool is_listening(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool is_up;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	is_up = !connect(fd, (struct sockaddr *)&address, sizeof(address));
	close(fd);
	return is_up;
}

void etcd_start(struct etcd_process *etcd, const char *const *arguments)
{
	char peer[64], cluster[80], log[96];
	const char *command[32] = {etcd->program, "--data-dir", etcd->folder, "--name", "a",
		"--listen-client-urls", etcd->url, "--advertise-client-urls", etcd->url,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", cluster, "--unsafe-no-fsync"};
	size_t count = 16;

	snprintf(peer, sizeof(peer), "http://127.0.0.1:%d", etcd->peer_port);
	snprintf(cluster, sizeof(cluster), "a=%s", peer);
	snprintf(log, sizeof(log), "%s.log", etcd->folder);
	while (arguments && *arguments && count < 31)
		command[count++] = *arguments++;
	etcd->pid = fork();
	CHECK(etcd->pid >= 0);
	if (!etcd->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (freopen(log, "a", stderr) && dup2(2, 1) >= 0)
			execv(etcd->program, (char *const *)(void *)command);
		_exit(127);
	}
	for (int i = 0; i < 600 && !is_listening(etcd->port); i++) {
		CHECK_EQ(waitpid(etcd->pid, NULL, WNOHANG), 0);
		td_time_sleep_until_ns(td_time_now_ns() + 50 * TD_NS_PER_MS);
	}
	CHECK(is_listening(etcd->port));
}

void etcd_signal(struct etcd_process *etcd, int signal)
{
	int status;

	if (etcd->pid <= 0)
		return;
	CHECK(!kill(etcd->pid, signal));
	if (signal == SIGKILL || signal == SIGTERM) {
		CHECK_EQ(waitpid(etcd->pid, NULL, 0), etcd->pid);
		etcd->pid = 0;
	}
	/* A thread of it may answer until the kernel has stopped them all. */
	if (signal == SIGSTOP) {
		CHECK_EQ(waitpid(etcd->pid, &status, WUNTRACED), etcd->pid);
		CHECK(WIFSTOPPED(status));
	}
}

void etcd_remove(struct etcd_process *etcd)
{
	char command[160];

	etcd_signal(etcd, SIGKILL);
	snprintf(command, sizeof(command), "rm -rf %s %s.log", etcd->folder, etcd->folder);
	CHECK_EQ(system(command), 0);
}
