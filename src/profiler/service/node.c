/* See node.h. */
#include "profiler/service/node.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "proto/socket.h"

#define PATIENCE_NS (15 * TD_NS_PER_S)
#define TERM_NS     (5 * TD_NS_PER_S)
#define POLL_NS     (10 * TD_NS_PER_MS)

/* -- the daemon -- */

static int exchange(int fd, const struct td_msg *request,
	void (*row)(const struct td_msg *msg, void *arg), void *arg, struct td_err *err)
{
	int r = td_socket_send(fd, request, NULL, 0);

	while (!r) {
		struct td_msg msg;

		r = td_socket_recv(fd, &msg, NULL, 0);
		if (r == TD_PROTO_UNKNOWN) {
			r = 0;
			continue;
		}
		if (r || msg.type == TD_MSG_TYPE_end)
			break;
		td_proto_each_str(&msg, td_printable);
		if (msg.type == TD_MSG_TYPE_error)
			return td_err_set(
				err, -EINVAL, "%.240s%.240s", msg.error.text, msg.error.rest);
		if (row)
			row(&msg, arg);
	}
	return r ? td_err_set(err, r, "the daemon did not answer: %s", strerror(-r)) : 0;
}

int td_node_ask(const struct td_msg *request, void (*row)(const struct td_msg *msg, void *arg),
	void *arg, struct td_err *err)
{
	td_auto_close int fd = -1;
	char path[256];
	int r = td_socket_path_typed(path, sizeof(path), err);

	if (r)
		return r;
	fd = td_socket_connect(path, PATIENCE_NS);
	if (fd < 0)
		return td_err_set(err, fd, "no daemon at %.200s (%s): `tandem run` starts one",
			path, strerror(-fd));
	return exchange(fd, request, row, arg, err);
}

int td_node_set(const char *job, const char *key, const char *value, struct td_err *err)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_set};

	snprintf(msg.set.job, sizeof(msg.set.job), "%s", job);
	snprintf(msg.set.key, sizeof(msg.set.key), "%s", key);
	snprintf(msg.set.value, sizeof(msg.set.value), "%s", value);
	return td_node_ask(&msg, NULL, NULL, err);
}

struct found {
	const char *name;
	uint32_t index;
	bool is;
	struct td_msg msg;
};

static void option_row(const struct td_msg *msg, void *arg)
{
	struct found *found = arg;

	if (msg->type == TD_MSG_TYPE_option && !strcmp(msg->option.key, found->name)) {
		found->msg = *msg;
		found->is = true;
	}
}

int td_node_get(const char *key, char *ret, size_t len, struct td_err *err)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_get};
	struct found found = {.name = key};
	int r = td_node_ask(&msg, option_row, &found, err);

	if (!r && !found.is)
		r = td_err_set(err, -ENOENT, "the daemon has no option \"%s\"", key);
	if (!r)
		snprintf(ret, len, "%s", found.msg.option.value);
	return r;
}

static void job_row(const struct td_msg *msg, void *arg)
{
	struct found *found = arg;

	if (msg->type != TD_MSG_TYPE_job)
		return;
	found->index++;
	if (found->name && !strcmp(msg->job.name, found->name)) {
		found->msg = *msg;
		found->is = true;
	}
}

int td_node_job(const char *name, struct td_msg_job *ret, struct td_err *err)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_list_jobs};
	struct found found = {.name = name};
	int r = td_node_ask(&msg, job_row, &found, err);

	if (r)
		return r;
	if (!found.is)
		return -ENOENT;
	*ret = found.msg.job;
	return 0;
}

int td_node_count_jobs(uint32_t *ret, struct td_err *err)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_list_jobs};
	struct found found = {.name = NULL};
	int r = td_node_ask(&msg, job_row, &found, err);

	if (!r)
		*ret = found.index;
	return r;
}

static void gpu_row(const struct td_msg *msg, void *arg)
{
	struct found *found = arg;

	if (msg->type == TD_MSG_TYPE_gpu && msg->gpu.index == found->index) {
		found->msg = *msg;
		found->is = true;
	}
}

int td_node_gpu(uint32_t index, struct td_msg_gpu *ret, struct td_err *err)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_list_gpus};
	struct found found = {.index = index};
	int r = td_node_ask(&msg, gpu_row, &found, err);

	if (!r && !found.is)
		r = td_err_set(err, -ENODEV, "the daemon shares no GPU %u", index);
	if (!r)
		*ret = found.msg.gpu;
	return r;
}

/* -- programs -- */

/* In the child. */
static void become(const char *tandem, const char *name, uint32_t share, const uint32_t *layers,
	char *const *command)
{
	const char *argv[TD_NODE_ARGUMENTS_MAX + 16] = {"tandem", "run", "--name", name, "--class"};
	char percent[16], text[TD_LAYERS_TEXT];
	size_t n = 5, room = sizeof(argv) / sizeof(*argv) - 1;
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (nowhere >= 0)
		(void)dup2(nowhere, STDOUT_FILENO);
	snprintf(percent, sizeof(percent), "%u", share);
	(void)setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent, 1);
	argv[n++] = layers ? "besteffort" : "online";
	if (layers) {
		td_layers_format(layers, text);
		argv[n++] = "--layers";
		argv[n++] = text;
	}
	argv[n++] = "--";
	for (size_t i = 0; command[i] && n < room; i++)
		argv[n++] = command[i];
	execv(tandem, (char *const *)(uintptr_t)argv);
	fprintf(stderr, "tandem: %s: %s\n", tandem, strerror(errno));
	_exit(127);
}

int td_node_start(struct td_started *ret, const char *name, uint32_t share, const uint32_t *layers,
	char *const *command, struct td_err *err)
{
	static const char *const candidates[] = {"tandem", "../cli/tandem", NULL};
	char path[4096];
	pid_t pid;

	if (!td_program_beside(path, sizeof(path), candidates))
		return td_err_set(err, -ENOENT, "tandem is not beside this program: install it");
	pid = fork();
	if (!pid)
		become(path, name, share, layers, command);
	if (pid < 0)
		return td_err_set(err, -errno, "cannot start a program: %s", strerror(errno));
	(void)setpgid(pid, pid);
	*ret = (struct td_started){.pid = pid};
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	return 0;
}

bool td_node_has_ended(const struct td_started *started)
{
	siginfo_t info = {0};

	return !started->pid ||
	       waitid(P_PID, (id_t)started->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

void td_node_stop(struct td_started *started)
{
	uint64_t kill_ns = td_time_now_ns() + TERM_NS, gone_ns;
	struct td_msg_job row;

	if (!started->pid)
		return;
	(void)kill(-started->pid, SIGTERM);
	while (!td_node_has_ended(started) && td_time_now_ns() < kill_ns)
		td_time_sleep_until_ns(td_time_now_ns() + POLL_NS);
	(void)kill(-started->pid, SIGKILL);
	(void)waitpid(started->pid, NULL, 0);
	started->pid = 0;
	for (gone_ns = td_time_now_ns() + TERM_NS; td_time_now_ns() < gone_ns;) {
		if (td_node_job(started->name, &row, NULL))
			return;
		td_time_sleep_until_ns(td_time_now_ns() + POLL_NS);
	}
}
