/* The process that tells signals to the group from signals to the supervisor; see witness.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/supervise/processes.h"
#include "cli/supervise/witness.h"

/* How long to wait for the witness: it may itself be stopped or get no CPU time. */
#define ANSWER_MS 1000
/* How often a stopped program is checked. Its supervisor stays stopped until then. */
#define LOOK_MS 200
/*
 * How long a program may outlive its supervisor: as long as leftover processes of a job
 * (TD_LIFE_GRACE_NS).
 */
#define ORPHAN_MS 10000

/* -- in the witness's process -- */

static uint64_t collect(void)
{
	const struct timespec at_once = {0, 0};
	uint64_t mask = 0;
	sigset_t all;
	int number;

	sigfillset(&all);
	while ((number = sigtimedwait(&all, NULL, &at_once)) > 0 || (number < 0 && errno == EINTR))
		if (number > 0 && number <= 64)
			mask |= 1ull << (number - 1);
	return mask;
}

/*
 * Kills the program some time after its supervisor has died. It was told, and may be cleaning up.
 */
static _Noreturn void outlive(int program_fd)
{
	struct pollfd poll_fd = {program_fd, POLLIN, 0};

	if (program_fd >= 0 && poll(&poll_fd, 1, ORPHAN_MS) <= 0)
		(void)syscall(SYS_pidfd_send_signal, program_fd, SIGKILL, NULL, 0);
	_exit(0);
}

static void know_program(int *program_fd, pid_t program)
{
	if (*program_fd >= 0)
		close(*program_fd);
	*program_fd = (int)syscall(SYS_pidfd_open, program, 0);
}

/*
 * Serves the supervisor's questions. Each is one number: a pid to watch, 0 to watch none, -1 to ask
 * for the signals. A number below -1 is the negative pid of the program.
 */
static _Noreturn void serve(int fd, pid_t supervisor)
{
	pid_t watched = 0;
	int program_fd = -1;

	for (;;) {
		struct pollfd poll_fd = {fd, POLLIN, 0};
		int r = poll(&poll_fd, 1, watched ? LOOK_MS : -1);
		uint64_t mask;
		pid_t said;

		if (watched && r == 0 && !td_process_is_stopped(watched)) {
			kill(supervisor, SIGCONT);
			watched = 0;
		}
		if (r <= 0)
			continue;
		if (recv(fd, &said, sizeof(said), 0) != (ssize_t)sizeof(said))
			outlive(program_fd);
		if (said < -1)
			know_program(&program_fd, -said);
		else
			watched = said > 0 ? said : 0;
		if (said != -1)
			continue;
		mask = collect();
		if (send(fd, &mask, sizeof(mask), MSG_NOSIGNAL) < 0)
			outlive(program_fd);
	}
}

/*
 * Closes all other descriptors. If the witness kept a pipe open, a process that waits for the
 * pipe's end would wait for the witness.
 */
static void close_others(int fd)
{
	int null = open("/dev/null", O_RDWR);

	for (int i = 0; i < 3; i++)
		if (i != fd)
			dup2(null, i);
	if (fd > 3)
		close_range(3, (unsigned)fd - 1, 0);
	close_range((unsigned)fd + 1, ~0u, 0);
}

/* -- in the supervisor's process -- */

int td_witness_start(struct td_witness *witness)
{
	pid_t supervisor = getpid();
	int ends[2];

	witness->pid = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	witness->pid = fork();
	if (witness->pid == 0) {
		prctl(PR_SET_NAME, "tandem-witness");
		if (getppid() != supervisor)
			_exit(0);
		close_others(ends[1]);
		serve(ends[1], supervisor);
	}
	close(ends[1]);
	witness->fd = ends[0];
	if (witness->pid > 0)
		return 0;
	close(ends[0]);
	witness->pid = 0;
	return -errno;
}

static void drain(int fd)
{
	uint64_t late;

	while (recv(fd, &late, sizeof(late), MSG_DONTWAIT) > 0)
		;
}

uint64_t td_witness_ask(struct td_witness *witness)
{
	const pid_t question = -1;
	struct pollfd poll_fd = {witness->fd, POLLIN, 0};
	uint64_t mask;

	if (!witness->pid)
		return 0;
	drain(witness->fd);
	if (send(witness->fd, &question, sizeof(question), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ||
		poll(&poll_fd, 1, ANSWER_MS) <= 0 ||
		recv(witness->fd, &mask, sizeof(mask), MSG_DONTWAIT) != (ssize_t)sizeof(mask))
		return 0;
	return mask;
}

void td_witness_watch(struct td_witness *witness, pid_t program)
{
	if (witness->pid)
		(void)!send(witness->fd, &program, sizeof(program), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void td_witness_program(struct td_witness *witness, pid_t program)
{
	const pid_t told = -program;

	if (witness->pid && program > 1)
		(void)!send(witness->fd, &told, sizeof(told), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void td_witness_end(struct td_witness *witness)
{
	if (!witness->pid)
		return;
	kill(witness->pid, SIGKILL);
	while (waitpid(witness->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(witness->fd);
	witness->pid = 0;
}
