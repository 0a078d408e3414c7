/* This file implements child.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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

static _Noreturn void become(char *const *argv, unsigned restarts,
	const struct td_inherited *inherited, void (*prepare)(void), int started_fd,
	pid_t supervisor)
{
	char text[16];
	int error;

	snprintf(text, sizeof(text), "%u", restarts);
	setenv("TANDEM_RESTARTS", text, 1);
	sigaction(SIGCHLD, &inherited->child, NULL);
	sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
	if (prepare)
		prepare();
	set_death_signal(supervisor);
	execvp(argv[0], argv);
	error = errno;
	(void)!write(started_fd, "", 1);
	fprintf(stderr, "tandem: %s: %s\n", argv[0], td_exec_reason(argv[0], error));
	_exit(error == ENOENT ? 127 : 126);
}

int td_child_start(struct td_child *child, char *const *argv, unsigned restarts,
	const struct td_inherited *inherited, void (*prepare)(void))
{
	pid_t supervisor = getpid();
	int ends[2];

	*child = (struct td_child){.started_fd = -1};
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	child->pid = fork();
	if (child->pid == 0) {
		/* The supervisor may have been killed before this line. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != supervisor)
			_exit(125);
		become(argv, restarts, inherited, prepare, ends[1], supervisor);
	}
	close(ends[1]);
	if (child->pid > 0) {
		child->started_fd = ends[0];
		return 0;
	}
	close(ends[0]);
	child->pid = 0;
	return -errno;
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
