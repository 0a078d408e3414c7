/* This file implements verbs.h. */
#include "web/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"

#define SAID_MAX 65536
/* How long a verb may run. A job that is evicted has time to save its state. */
#define PATIENCE_NS (120 * TD_NS_PER_S)

static const struct {
	const char *name, *key, *option;
	bool asks;
	const char *help;
} verbs[] = {
#define VERB(name, key, option, asks, help) {#name, key, option, asks, help},
#include "web/verbs.def"
#undef VERB
};

void td_verbs_write(struct td_text *text)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		td_text_add(text, "%c{\"name\":\"%s\",\"key\":\"%s\",\"asks\":%s,\"help\":\"%s\"}",
			i ? ',' : '[', verbs[i].name, verbs[i].key,
			verbs[i].asks ? "true" : "false", verbs[i].help);
	td_text_put(text, "]", 1);
}

/* Returns the option between the verb and the job, or ""; NULL if there is no such verb. */
static const char *option_of(const char *name)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, name))
			return verbs[i].option;
	return NULL;
}

bool td_verb_is_known(const char *name)
{
	return option_of(name) != NULL;
}

/*
 * Returns the path of the program `tandem`: in the folder of this program, or where the build puts
 * it. NULL: it is in neither.
 */
static const char *find_tandem(char *buf, size_t len)
{
	static const char *const places[] = {"tandem", "../cli/tandem"};
	ssize_t n = readlink("/proc/self/exe", buf, len - 1);
	char *name;

	buf[n > 0 ? n : 0] = 0;
	name = strrchr(buf, '/');
	for (size_t i = 0; name && i < sizeof(places) / sizeof(places[0]); i++) {
		size_t room = len - (size_t)(name + 1 - buf);

		snprintf(name + 1, room, "%s", places[i]);
		if (!access(buf, X_OK))
			return buf;
	}
	errno = ENOENT;
	return NULL;
}

/* Executes the verb, in the child process. */
static void become(const char *path, const char *verb, const char *job, int output)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	if (*option_of(verb))
		execl(path, "tandem", verb, option_of(verb), job, (char *)NULL);
	else
		execl(path, "tandem", verb, job, (char *)NULL);
	_exit(127);
}

static pid_t spawn(const char *verb, const char *job, int *ret_fd)
{
	char buf[PATH_MAX];
	const char *path = find_tandem(buf, sizeof(buf));
	int fds[2];
	pid_t pid;

	if (!path || pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (!pid)
		become(path, verb, job, fds[1]);
	close(fds[1]);
	if (pid < 0) {
		int error = errno;

		close(fds[0]);
		return -error;
	}
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	*ret_fd = fds[0];
	return pid;
}

int td_verb_start(struct td_verb_runs *runs, const char *verb, const char *job,
	void (*done)(void *arg, int status, const char *said), void *arg)
{
	struct td_verb_run *run = runs->runs, *end = run + TD_VERB_RUNS;
	pid_t pid;

	while (run < end && run->pid)
		run++;
	if (run == end)
		return -EBUSY;
	pid = spawn(verb, job, &run->fd);
	if (pid < 0)
		return pid;
	run->pid = pid;
	run->deadline_ns = td_time_now_ns() + PATIENCE_NS;
	run->done = done;
	run->arg = arg;
	td_text_clear(&run->said);
	return 0;
}

void td_verb_fds(const struct td_verb_runs *runs, struct pollfd *ret)
{
	for (unsigned i = 0; i < TD_VERB_RUNS; i++)
		ret[i] = (struct pollfd){runs->runs[i].pid ? runs->runs[i].fd : -1, POLLIN, 0};
}

/* Waits for the process, and frees the entry. Returns the exit status. */
static int reap(struct td_verb_run *run)
{
	int status = 0;

	close(run->fd);
	while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
		;
	run->pid = 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Reads the output. Returns whether it has ended. */
static bool read_some(struct td_verb_run *run)
{
	char buf[4096];

	for (;;) {
		ssize_t n = read(run->fd, buf, sizeof(buf));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 || errno != EAGAIN;
		if (run->said.length + (size_t)n < SAID_MAX)
			td_text_put(&run->said, buf, (size_t)n);
	}
}

void td_verb_turn(struct td_verb_runs *runs, uint64_t now_ns, uint64_t *ret_wakeup_ns)
{
	*ret_wakeup_ns = UINT64_MAX;
	for (unsigned i = 0; i < TD_VERB_RUNS; i++) {
		struct td_verb_run *run = &runs->runs[i];
		bool ended = run->pid && read_some(run);
		int status;

		if (!run->pid)
			continue;
		if (!ended && now_ns < run->deadline_ns) {
			if (run->deadline_ns < *ret_wakeup_ns)
				*ret_wakeup_ns = run->deadline_ns;
			continue;
		}
		if (!ended)
			(void)kill(run->pid, SIGKILL);
		status = reap(run);
		run->done(run->arg, status, run->said.text ? run->said.text : "");
	}
}

void td_verb_end_all(struct td_verb_runs *runs)
{
	for (unsigned i = 0; i < TD_VERB_RUNS; i++) {
		struct td_verb_run *run = &runs->runs[i];

		if (run->pid) {
			(void)kill(run->pid, SIGKILL);
			(void)reap(run);
		}
		td_text_deinit(&run->said);
	}
}
