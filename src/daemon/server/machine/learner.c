/* This file implements learner.h. */
#include "daemon/server/machine/learner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/program.h"
#include "base/time.h"
#include "daemon/model/node.h"
#include "daemon/node/learning.h"
#include "daemon/server/loop/spawn.h"

#define DEADLINE_NS (120 * TD_NS_PER_S)
#define PAUSE_NS    (600 * TD_NS_PER_S)

_Static_assert(TD_LESSONS_MAX *TD_LESSON_TEXT <= 65536, "a pipe has room for all lessons");

static void ended(struct td_source *source, uint32_t events)
{
	(void)source;
	(void)events; /* td_learner_turn(), which follows, waits for the process */
}

void td_learner_init(struct td_learner *learner, struct td_loop *loop)
{
	*learner = (struct td_learner){.source = {.fd = -1, .ready = ended}, .loop = loop};
}

static void forget(struct td_learner *learner)
{
	td_loop_remove(learner->loop, &learner->source);
	close(learner->source.fd);
	learner->source.fd = -1;
	learner->pid = 0;
}

void td_learner_deinit(struct td_learner *learner)
{
	/* The process goes on: it keeps what it was given. */
	if (learner->source.fd >= 0)
		forget(learner);
}

/* Writes the lessons into a pipe. Returns its end to read, or -errno. */
static int make_pipe(struct td_lessons *lessons)
{
	char text[TD_LESSON_TEXT];
	struct td_lesson lesson;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	while (td_lessons_take(lessons, &lesson)) {
		size_t n = td_lesson_write(&lesson, text);

		/* A lesson that does not fit, because the user's pipes are cut short, is lost. */
		if (n)
			(void)!write(fds[1], text, n);
	}
	close(fds[1]);
	return fds[0];
}

static int start(struct td_learner *learner, struct td_node *node, const char *program)
{
	char *argv[] = {(char *)"tandem-profile", (char *)"learn", (char *)"--profiles",
		(char *)node->profiles.directory, NULL};
	int in_fd = make_pipe(&node->lessons), r;

	if (in_fd < 0)
		return in_fd;
	r = td_spawn(program, argv, in_fd, STDIN_FILENO, &learner->pid);
	close(in_fd);
	if (r)
		return r;
	learner->source.fd = (int)syscall(SYS_pidfd_open, learner->pid, 0);
	r = learner->source.fd < 0 ? -errno : td_loop_add(learner->loop, &learner->source);
	if (!r)
		return 0;
	/* Nothing would report the end of the process, so it is killed; it has hardly begun. */
	kill(learner->pid, SIGKILL);
	(void)waitpid(learner->pid, NULL, 0);
	if (learner->source.fd >= 0)
		close(learner->source.fd);
	learner->source.fd = -1;
	return r;
}

static void fail(struct td_learner *learner, struct td_node *node, const char *why, uint64_t now_ns)
{
	learner->pause_until_ns = now_ns + PAUSE_NS;
	td_learning_failed(node, why, now_ns);
}

static void begin(struct td_learner *learner, struct td_node *node, uint64_t now_ns)
{
	static const char *const candidates[] = {"tandem-profile", "../bin/tandem-profile",
		"../../bin/tandem-profile", "../profiler/tandem-profile", NULL};
	char program[PATH_MAX];
	int r;

	if (!td_program_beside(program, sizeof(program), candidates)) {
		fail(learner, node, "tandem-profile is not beside tandemd", now_ns);
		return;
	}
	r = start(learner, node, program);
	if (r) {
		fail(learner, node, strerror(-r), now_ns);
		return;
	}
	learner->killed = false;
	learner->deadline_ns = now_ns + DEADLINE_NS;
}

static void take_end(struct td_learner *learner, struct td_node *node, int status, uint64_t now_ns)
{
	char why[64];

	forget(learner);
	if (WIFEXITED(status) && !WEXITSTATUS(status)) {
		td_learning_learnt(node, now_ns);
		return;
	}
	if (WIFEXITED(status))
		snprintf(why, sizeof(why), "tandem-profile ended with status %d",
			WEXITSTATUS(status));
	else
		snprintf(why, sizeof(why), "tandem-profile ended by signal %d", WTERMSIG(status));
	fail(learner, node, why, now_ns);
}

uint64_t td_learner_turn(struct td_learner *learner, struct td_node *node, uint64_t now_ns)
{
	uint64_t due_ns;
	int status;

	if (learner->source.fd >= 0 && waitpid(learner->pid, &status, WNOHANG) == learner->pid)
		take_end(learner, node, status, now_ns);
	if (learner->source.fd >= 0) {
		if (learner->killed || now_ns < learner->deadline_ns)
			return learner->killed ? UINT64_MAX : learner->deadline_ns;
		learner->killed = true;
		kill(learner->pid, SIGKILL);
		return UINT64_MAX;
	}
	due_ns = *node->profiles.directory ? td_lessons_due_ns(&node->lessons, now_ns) : UINT64_MAX;
	if (due_ns == UINT64_MAX || !node->options.learn)
		return UINT64_MAX;
	if (due_ns < learner->pause_until_ns)
		due_ns = learner->pause_until_ns;
	if (now_ns < due_ns)
		return due_ns;
	begin(learner, node, now_ns);
	return learner->source.fd >= 0 ? learner->deadline_ns : learner->pause_until_ns;
}
