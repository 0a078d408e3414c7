/* This file implements child.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/program.h"
#include "cli/supervise/child.h"

void td_inherited_take(struct td_inherited *ret)
{
	const struct sigaction initial = {.sa_handler = SIG_DFL};
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &ret->mask);
	sigaction(SIGCHLD, &initial, &ret->child);
}

/*
 * Sets the signal that the child gets when its parent dies. Killing a client of MPS may hang the
 * MPS server. So such a child gets SIGTERM, which libtandem catches, and the witness kills it if it
 * stays.
 */
static void set_death_signal(pid_t supervisor)
{
	prctl(PR_SET_PDEATHSIG, getenv("CUDA_MPS_PIPE_DIRECTORY") ? SIGTERM : SIGKILL);
	/* The supervisor may have been killed before this call. */
	if (getppid() != supervisor)
		_exit(125);
}

/*
 * The library writes to the descriptor only if it still is this pipe (preload/measure/service.c).
 */
static void set_ready(int fd)
{
	struct stat pipe;
	char text[48];

	if (fd < 0 || fstat(fd, &pipe))
		return;
	snprintf(text, sizeof(text), "%d:%llu", fd, (unsigned long long)pipe.st_ino);
	setenv("TANDEM_READY", text, 1);
	(void)fcntl(fd, F_SETFD, 0);
}

static void set_number(const char *name, unsigned number)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	setenv(name, text, 1);
}

static _Noreturn void become(char *const *argv, const struct td_start *start,
	const struct td_inherited *inherited, int started_fd, int ready_fd, pid_t supervisor)
{
	int error;

	set_number("TANDEM_RESTARTS", start->restarts);
	if (start->instance)
		set_number("TANDEM_INSTANCE", start->instance);
	if (start->sm_share_ppm) {
		set_number("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", start->sm_share_ppm / 10000);
		/*
		 * The percentage is one for each context, so that the program can give a later
		 * context a larger one.
		 */
		set_number("CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING", 1);
	}
	set_ready(ready_fd);
	sigaction(SIGCHLD, &inherited->child, NULL);
	sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
	if (start->prepare)
		start->prepare();
	set_death_signal(supervisor);
	execvp(argv[0], argv);
	error = errno;
	(void)!write(started_fd, "", 1);
	fprintf(stderr, "tandem: %s: %s\n", argv[0], td_exec_reason(argv[0], error));
	_exit(error == ENOENT ? 127 : 126);
}

static void close_both(const int *ends)
{
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
}

int td_child_start(struct td_child *child, char *const *argv, const struct td_start *start,
	const struct td_inherited *inherited)
{
	pid_t supervisor = getpid();
	int ends[2], ready[2] = {-1, -1};

	*child = (struct td_child){.started_fd = -1, .ready_fd = -1, .instance = start->instance};
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	/*
	 * A service tells that it is ready through this pipe. Without the pipe, it counts as ready
	 * when it listens on a socket.
	 */
	if (start->instance && pipe2(ready, O_CLOEXEC | O_NONBLOCK) < 0)
		ready[0] = ready[1] = -1;
	child->pid = fork();
	if (child->pid == 0) {
		/* The supervisor may have been killed before this line. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != supervisor)
			_exit(125);
		become(argv, start, inherited, ends[1], ready[1], supervisor);
	}
	if (child->pid > 0) {
		close(ends[1]);
		if (ready[1] >= 0)
			close(ready[1]);
		child->started_fd = ends[0];
		child->ready_fd = ready[0];
		return 0;
	}
	close_both(ends);
	close_both(ready);
	child->pid = 0;
	return -errno;
}

bool td_child_is_ready(struct td_child *child)
{
	char byte;
	ssize_t n = child->ready_fd < 0 ? -1 : read(child->ready_fd, &byte, 1);

	/* No process of the program has the pipe any more: it will not say anything. */
	if (!n) {
		close(child->ready_fd);
		child->ready_fd = -1;
	}
	return n == 1;
}

void td_child_forget(struct td_child *child)
{
	const int fds[] = {child->started_fd, child->ready_fd};

	close_both(fds);
	*child = (struct td_child){.started_fd = -1, .ready_fd = -1};
}

bool td_child_is_executed(struct td_child *child)
{
	ssize_t n;
	char byte;

	if (child->started_fd < 0)
		return !child->is_unstarted;
	do
		n = read(child->started_fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	close(child->started_fd);
	child->started_fd = -1;
	child->is_unstarted = n == 1;
	return !child->is_unstarted;
}
