/* See measure.h. */
#include "profiler/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "proto/socket.h"
#include "proto/words.h"
#include "view/snapshot.h"

#define ROUND_NS    (100 * TD_NS_PER_MS)
#define PATIENCE_NS (2 * TD_NS_PER_S)
#define DAEMON_NS   (15 * TD_NS_PER_S) /* `tandem run` starts it */
#define METER_NS    (5 * TD_NS_PER_S)  /* a program that launches is measured by then */
#define LEAVE_NS    (10 * TD_NS_PER_S)
#define TERM_NS     (5 * TD_NS_PER_S)
#define LOOK_NS     (10 * TD_NS_PER_MS)
#define RUN_WORDS   8

enum phase { STARTING, WARMING, MEASURING, OVER };

struct measuring {
	const struct td_measure *measure;
	struct td_measured_job *jobs;
	unsigned count, started;
	enum phase phase;
	uint64_t since_ns; /* the phase, or the youngest job's start */
	uint64_t unmetered_ns;
	int fd;
	struct td_snapshot round;
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = stop};

	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
}

/* -- programs -- */

static void become(const struct td_measured_job *job, const char *tandem)
{
	size_t count = 0;
	const char **words;

	while (job->argv[count])
		count++;
	words = calloc(count + RUN_WORDS + 1, sizeof(*words));
	if (!words)
		_exit(TD_MEASURE_JOBS);
	words[0] = "tandem";
	words[1] = "run";
	words[2] = "--name";
	words[3] = job->name;
	words[4] = "--class";
	words[5] = job->class;
	words[6] = "--";
	memcpy(words + RUN_WORDS - 1, job->argv, count * sizeof(*words));
	execv(tandem, (char *const *)words);
	_exit(127);
}

/*
 * Runs in the child. It has a process group of its own. So a key of the terminal reaches only this
 * program, which then ends the child in an orderly way.
 */
static void start_child(const struct td_measured_job *job, const char *tandem)
{
	int null = open("/dev/null", O_RDWR);
	char percent[16];

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	dup2(null, 0);
	dup2(job->is_silent ? null : 2, 1);
	if (job->is_silent)
		dup2(null, 2);
	if (job->sm_percent) {
		snprintf(percent, sizeof(percent), "%u", job->sm_percent);
		setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent, 1);
	}
	become(job, tandem);
}

static int start(struct measuring *m, struct td_err *err)
{
	static const char *const candidates[] = {"tandem", "../cli/tandem", NULL};
	struct td_measured_job *job = &m->jobs[m->started];
	char tandem[PATH_MAX];

	if (!td_program_beside(tandem, sizeof(tandem), candidates))
		return td_err_set(err, -ENOENT, "tandem was not found beside tandem-profile");
	job->pid = fork();
	if (job->pid < 0)
		return td_err_set(err, -errno, "fork: %s", strerror(errno));
	if (!job->pid)
		start_child(job, tandem);
	/*
	 * `tandem run` gives the job an id that begins with its own pid. It then becomes the
	 * program, which keeps that pid.
	 */
	snprintf(job->prefix, sizeof(job->prefix), "%d.", (int)job->pid);
	m->started++;
	m->since_ns = td_time_now_ns();
	m->unmetered_ns = 0;
	return 0;
}

/* Returns whether the program has ended. */
static bool reap(struct td_measured_job *job)
{
	if (job->pid <= 0)
		return true;
	if (waitpid(job->pid, &job->status, WNOHANG) != job->pid)
		return false;
	job->pid = 0;
	return true;
}

static bool ends_within(struct td_measured_job *job, uint64_t ns)
{
	uint64_t end_ns = td_time_now_ns() + ns;

	while (!reap(job)) {
		if (td_time_now_ns() >= end_ns)
			return false;
		td_time_sleep_until_ns(td_time_now_ns() + LOOK_NS);
	}
	return true;
}

/* Asks the daemon to end the job. The answer does not matter: the process itself is watched. */
static int ask_to_end(const struct td_measured_job *job)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_act};
	char path[256];
	int fd;

	if (!*job->figures.job || !td_socket_path(path, sizeof(path)))
		return -1;
	fd = td_socket_connect(path, PATIENCE_NS);
	if (fd < 0)
		return -1;
	msg.act.kind = TD_ACTION_EVICT;
	snprintf(msg.act.job, sizeof(msg.act.job), "%s", job->figures.job);
	(void)td_socket_send(fd, &msg, NULL, 0);
	return fd;
}

static void end(struct td_measured_job *job)
{
	pid_t group = job->pid;
	int fd;

	if (reap(job))
		return;
	fd = ask_to_end(job);
	if (fd < 0 || !ends_within(job, LEAVE_NS)) {
		kill(-group, SIGTERM);
		if (!ends_within(job, TERM_NS)) {
			kill(-group, SIGKILL);
			(void)ends_within(job, TERM_NS);
		}
	}
	/* A shell's children may have outlived it. */
	kill(-group, SIGTERM);
	if (fd >= 0)
		close(fd);
}

/* -- the daemon -- */

static int watch(struct measuring *m, struct td_err *err)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_watch};
	uint64_t end_ns = td_time_now_ns() + DAEMON_NS;
	char path[256];

	if (td_socket_path_typed(path, sizeof(path), err))
		return -EINVAL;
	for (;;) {
		m->fd = td_socket_connect(path, PATIENCE_NS);
		if (m->fd >= 0)
			break;
		if (td_time_now_ns() > end_ns || stopped || reap(&m->jobs[0]))
			return td_err_set(
				err, m->fd, "no daemon at %s (%s)", path, strerror(-m->fd));
		td_time_sleep_until_ns(td_time_now_ns() + LOOK_NS);
	}
	msg.watch.period_ns = ROUND_NS;
	if (td_socket_send(m->fd, &msg, NULL, 0))
		return td_err_set(err, -EPIPE, "the daemon at %s has ended", path);
	return 0;
}

/* Takes what has come. 1: a round is complete; 0: not yet. */
static int listen_to(struct measuring *m, struct td_err *err)
{
	struct pollfd poll_fd = {m->fd, POLLIN, 0};
	struct td_msg msg;

	if (poll(&poll_fd, 1, (int)(ROUND_NS / TD_NS_PER_MS)) <= 0)
		return 0;
	for (;;) {
		int r = td_socket_recv(m->fd, &msg, NULL, MSG_DONTWAIT);

		if (r == -EAGAIN)
			return 0;
		if (r == TD_PROTO_UNKNOWN)
			continue;
		if (r)
			return td_err_set(err, r, "the daemon has ended");
		td_proto_each_str(&msg, td_printable);
		if (msg.type == TD_MSG_TYPE_error)
			return td_err_set(err, -EPROTO, "%s", msg.error.text);
		r = td_snapshot_take(&m->round, &msg);
		if (r)
			return r < 0 ? td_err_set(err, r, "there is no memory") : 1;
	}
}

/* -- the phases -- */

static int end_too_soon(const struct td_measured_job *job, struct td_err *err)
{
	if (WIFEXITED(job->status))
		return td_err_set(err, -ECHILD,
			"\"%s\" ended with status %d before it could be measured", job->name,
			WEXITSTATUS(job->status));
	return td_err_set(err, -ECHILD, "\"%s\" was ended by signal %d before it could be measured",
		job->name, WTERMSIG(job->status));
}

static int check_alone(const struct measuring *m, struct td_err *err)
{
	const char *prefixes[TD_MEASURE_JOBS], *other;

	for (unsigned i = 0; i < m->count; i++)
		prefixes[i] = i < m->started ? m->jobs[i].prefix : "\n";
	other = td_figures_other(&m->round, m->jobs[0].figures.gpu, prefixes, m->count);
	if (!other)
		return 0;
	return td_err_set(err, -EBUSY,
		"%s works on GPU %u: nothing was measured, as the figures would not be of this "
		"program alone; try again when tandem ps shows that it has ended",
		other, m->jobs[0].figures.gpu);
}

static void enter(struct measuring *m, enum phase phase)
{
	m->phase = phase;
	m->since_ns = td_time_now_ns();
	for (unsigned i = 0; i < m->count && phase == MEASURING; i++)
		td_figures_begin(&m->jobs[i].figures);
}

/* The youngest job does not work yet, or is not measured. */
static int wait_for(struct measuring *m, enum td_figures_state state, struct td_err *err)
{
	const struct td_measured_job *job = &m->jobs[m->started - 1];
	uint64_t now_ns = td_time_now_ns();

	if (state == TD_FIGURES_UNMETERED && !m->unmetered_ns)
		m->unmetered_ns = now_ns;
	if (m->unmetered_ns && now_ns > m->unmetered_ns + METER_NS)
		return td_err_set(err, -ENODATA,
			"the daemon does not measure \"%s\": tandem set meter=on turns that on",
			job->name);
	if (now_ns > m->since_ns + m->measure->start_ns)
		return td_err_set(err, -ETIMEDOUT,
			"\"%s\" has not launched anything on a GPU in %.0f s", job->name,
			(double)m->measure->start_ns / 1e9);
	return 0;
}

static int step(struct measuring *m, const enum td_figures_state *states, struct td_err *err)
{
	uint64_t passed_ns = td_time_now_ns() - m->since_ns;

	for (unsigned i = 0; i < m->started; i++)
		if (states[i] == TD_FIGURES_SEVERAL)
			return td_err_set(err, -ENOTSUP,
				"\"%s\" uses several GPUs: CUDA_VISIBLE_DEVICES can hide all but "
				"one",
				m->jobs[i].name);
	switch (m->phase) {
	case STARTING:
		if (states[m->started - 1] != TD_FIGURES_MEASURED)
			return wait_for(m, states[m->started - 1], err);
		if (m->started < m->count)
			return start(m, err);
		enter(m, WARMING);
		return 0;
	case WARMING:
		if (passed_ns >= m->measure->warm_ns)
			enter(m, MEASURING);
		return check_alone(m, err);
	case MEASURING:
		if (m->jobs[0].figures.span_ns >= m->measure->span_ns)
			m->phase = OVER;
		return check_alone(m, err);
	case OVER: break;
	}
	return 0;
}

/* 1: a job has ended, and what was measured until then is enough. */
static int look_for_ends(struct measuring *m, struct td_err *err)
{
	for (unsigned i = 0; i < m->started; i++) {
		struct td_measured_job *job = &m->jobs[i];

		if (!reap(job))
			continue;
		if (m->phase != MEASURING || job->figures.span_ns < m->measure->least_ns)
			return end_too_soon(job, err);
		job->has_ended = true;
		m->phase = OVER;
		return 1;
	}
	return 0;
}

/* A round in which a job has left its GPU is not taken: it would count as idle time. */
static int take(struct measuring *m, enum td_figures_state *ret_states)
{
	for (unsigned i = 0; i < m->started; i++) {
		struct td_figures was = m->jobs[i].figures;

		ret_states[i] = td_figures_take(&m->jobs[i].figures, &m->round, m->jobs[i].prefix);
		if (ret_states[i] == TD_FIGURES_ABSENT && m->phase == MEASURING) {
			m->jobs[i].figures = was;
			return 1;
		}
	}
	return 0;
}

static int run(struct measuring *m, struct td_err *err)
{
	enum td_figures_state states[TD_MEASURE_JOBS];
	int r = start(m, err);

	r = r ? r : watch(m, err);
	while (!r && m->phase != OVER) {
		if (stopped)
			return td_err_set(err, -EINTR, "interrupted: nothing was kept");
		r = look_for_ends(m, err);
		if (r)
			break;
		r = listen_to(m, err);
		if (r <= 0)
			continue;
		r = take(m, states) ? 0 : step(m, states, err);
		td_snapshot_clear(&m->round);
	}
	return r < 0 ? r : 0;
}

int td_measure(const struct td_measure *measure, struct td_measured_job *jobs, unsigned count,
	struct td_err *err)
{
	struct measuring m = {.measure = measure, .jobs = jobs, .count = count, .fd = -1};
	int r;

	catch_signals();
	for (unsigned i = 0; i < count; i++) {
		memset(&jobs[i].figures, 0, sizeof(jobs[i].figures));
		jobs[i].has_ended = false;
		jobs[i].pid = 0;
	}
	td_snapshot_init(&m.round);
	r = run(&m, err);
	/* The best-effort program, which is the last, leaves first. */
	for (unsigned i = m.started; i--;)
		end(&jobs[i]);
	td_snapshot_deinit(&m.round);
	if (m.fd >= 0)
		close(m.fd);
	return r;
}
