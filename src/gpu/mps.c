/* Implements mps.h. One command runs at a time, and fails if it takes longer than COMMAND_NS. */
#include "gpu/mps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/text.h"
#include "base/time.h"

#define DEFAULT_DIRECTORY "/tmp/nvidia-mps"
#define PIPE_VARIABLE     "CUDA_MPS_PIPE_DIRECTORY"
#define PID_FILE          "nvidia-cuda-mps-control.pid"
#define COMMAND_NS        (20 * TD_NS_PER_S) /* the first start may load the driver */
#define LOOK_NS           (2 * TD_NS_PER_S)
#define FIND_NS           (200 * TD_NS_PER_MS) /* doubles with each vain question, to LOOK_NS */
#define RETRY_NS          (1 * TD_NS_PER_S)    /* doubles with each failure */
#define RETRY_DOUBLINGS   6u
#define LASTED_NS         (60 * TD_NS_PER_S)
#define NEVER_NS          UINT64_MAX
#define ENVIRONMENT_MAX   4096

extern char **environ;

const char *td_mpsd_state_name(enum td_mpsd_state state)
{
	static const char *const names[TD_MPSD_STATE_N] = {
		"off", "starting", "ready", "fault", "stopping", "failed"};

	return names[state];
}

pid_t td_mps_parse_list(const char *text)
{
	char *end;
	long pid = strtol(text, &end, 10);

	return end != text && (*end == '\n' || !*end) && pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

bool td_mps_parse_fault(const char *text)
{
	return !strncmp(text, "FAULT", 5);
}

bool td_mps_is_installed(void)
{
	const char *path = getenv("PATH");
	char name[PATH_MAX];

	while (path && *path) {
		size_t len = strcspn(path, ":");

		snprintf(name, sizeof(name), "%.*s/" TD_MPS_PROGRAM, (int)len, path);
		if (!access(name, X_OK))
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

uint64_t td_mpsd_started_ns(const struct td_mpsd *mps)
{
	if (!mps->control)
		return 0;
	return mps->server_ns > mps->started_ns ? mps->server_ns : mps->started_ns;
}

/* -- directories -- */

/*
 * Tells whether a process lives and has the control daemon's name, which Linux cuts to 15
 * characters. In /proc/PID/stat the name ends at the last bracket, and the state follows.
 */
static bool is_control(pid_t pid)
{
	char path[64], stat[256];
	const char *name, *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (td_file_read(path, stat, sizeof(stat)))
		return false;
	name = strchr(stat, '(');
	end = strrchr(stat, ')');
	return name && end && !strncmp(name + 1, TD_MPS_PROGRAM, 15) &&
	       strncmp(end, ") Z", 3) != 0 && strncmp(end, ") X", 3) != 0;
}

static bool is_trusted_user(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

/* Opens the pid file. Links are not followed: anybody may have made the directory. */
static int open_pid_file(const char *directory)
{
	int at = open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), fd = -1;
	struct stat st;

	if (at < 0)
		return -1;
	if (!fstat(at, &st) && is_trusted_user(st.st_uid))
		fd = openat(
			at, PID_FILE, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
	close(at);
	return fd;
}

bool td_mps_look(const char *directory, struct td_mps_place *ret)
{
	char text[32] = "";
	struct stat st;
	ssize_t n;
	int fd = open_pid_file(directory);

	if (fd < 0)
		return false;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return false;
	}
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	*ret = (struct td_mps_place){.pid = n > 0 ? td_mps_parse_list(text) : 0, .uid = st.st_uid};
	snprintf(ret->directory, sizeof(ret->directory), "%s", directory);
	ret->alive = ret->pid && is_control(ret->pid);
	return true;
}

/* Accepts a live control daemon of root or our user only. Others could use one to forbid us MPS. */
static bool is_trusted(const struct td_mps_place *place)
{
	return place->alive && is_trusted_user(place->uid);
}

bool td_mps_foreign(const char *own, struct td_mps_place *ret)
{
	const char *set = getenv(PIPE_VARIABLE);

	if (set && *set && strncmp(set, own, strlen(own)) && td_mps_look(set, ret) &&
		is_trusted(ret))
		return true;
	return td_mps_look(DEFAULT_DIRECTORY, ret) && is_trusted(ret);
}

/* -- commands -- */

static int open_pidfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

static bool has_ended(int pid_fd)
{
	struct pollfd fd = {.fd = pid_fd, .events = POLLIN};

	return pid_fd >= 0 && poll(&fd, 1, 0) == 1;
}

static int watch(const struct td_mpsd *mps, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(mps->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool is_ours(const char *variable)
{
	static const char *const names[] = {"CUDA_MPS_", "CUDA_VISIBLE_DEVICES=", "LD_PRELOAD="};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Fills the child's environment: ours, but with the MPS variables of this control daemon. */
static void fill_environment(const struct td_mpsd *mps, char (*own)[TD_MPS_PATH + 64], char **ret)
{
	size_t n = 0;

	snprintf(own[0], sizeof(own[0]), PIPE_VARIABLE "=%s", mps->directory);
	snprintf(own[1], sizeof(own[1]), "CUDA_MPS_LOG_DIRECTORY=%s", mps->directory);
	snprintf(own[2], sizeof(own[2]), "CUDA_VISIBLE_DEVICES=%s", mps->gpu);
	for (char **v = environ; *v && n < ENVIRONMENT_MAX - 4; v++)
		if (!is_ours(*v))
			ret[n++] = *v;
	for (size_t i = 0; i < 3; i++)
		ret[n++] = own[i];
	ret[n] = NULL;
}

/* Starts a child with the signal mask of a fresh process, since ours blocks signals. */
static int spawn(const struct td_mpsd *mps, const char *program, char *const *argv, int in_fd,
	int out_fd, pid_t *ret)
{
	static char *environment[ENVIRONMENT_MAX];
	char own[3][TD_MPS_PATH + 64];
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;
	int r;

	fill_environment(mps, own, environment);
	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in_fd, 0);
	posix_spawn_file_actions_adddup2(&files, out_fd, 1);
	posix_spawn_file_actions_adddup2(&files, out_fd, 2);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	r = posix_spawnp(ret, program, &files, &attributes, argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return -r;
}

/* Starts the control program with the command as its input. Returns 0 or -errno. */
static int run(const struct td_mpsd *mps, const char *command, pid_t *ret_pid, int *ret_out_fd)
{
	char *arguments[] = {(char *)TD_MPS_PROGRAM, *command ? NULL : (char *)"-d", NULL};
	int in[2], out[2], r;

	if (pipe2(in, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(out, O_CLOEXEC) < 0) {
		r = -errno;
		close(in[0]);
		close(in[1]);
		return r;
	}
	r = write(in[1], command, strlen(command)) < 0 ? -errno : 0;
	if (!r)
		r = spawn(mps, TD_MPS_PROGRAM, arguments, in[0], out[1], ret_pid);
	close(in[0]);
	close(in[1]);
	close(out[1]);
	if (r)
		close(out[0]);
	else
		*ret_out_fd = out[0];
	return r;
}

static void end_call(struct td_mpsd *mps)
{
	close_fd(&mps->call.pid_fd);
	close_fd(&mps->call.out_fd);
	mps->call.what = TD_MPS_NONE;
	mps->call.pid = 0;
	mps->call.killed = false;
}

/*
 * Kills the running command without waiting: a process within a driver's call does not end at once.
 * No other command starts until it has ended, so there is at most one such process.
 */
static void kill_call(struct td_mpsd *mps)
{
	kill(mps->call.pid, SIGKILL);
	mps->call.killed = true;
}

static void fail(struct td_mpsd *mps, uint64_t now_ns, const char *why)
{
	uint32_t doublings = mps->failures < RETRY_DOUBLINGS ? mps->failures : RETRY_DOUBLINGS;

	mps->state = TD_MPSD_FAILED;
	mps->failures++;
	mps->retry_ns = now_ns + (RETRY_NS << doublings);
	snprintf(mps->why, sizeof(mps->why), "%.150s", why);
	mps->why[strcspn(mps->why, "\n")] = 0;
}

static void call(
	struct td_mpsd *mps, enum td_mps_command what, const char *command, uint64_t now_ns)
{
	int r = run(mps, command, &mps->call.pid, &mps->call.out_fd);

	if (!r) {
		mps->call.what = what;
		/* quit ends when all clients have. It has a limit only before a restart. */
		mps->call.until_ns =
			what == TD_MPS_QUIT && !mps->restarts ? NEVER_NS : now_ns + COMMAND_NS;
		mps->call.pid_fd = open_pidfd(mps->call.pid);
		r = mps->call.pid_fd < 0 ? mps->call.pid_fd : watch(mps, mps->call.pid_fd);
	}
	if (!r)
		return;
	close_fd(&mps->call.pid_fd);
	if (mps->call.pid)
		kill_call(mps);
	else
		end_call(mps);
	fail(mps, now_ns,
		r == -ENOENT ? TD_MPS_PROGRAM " is not on the PATH: it comes with NVIDIA's driver"
			     : strerror(-r));
}

/* -- the control daemon and its server -- */

static void lose_server(struct td_mpsd *mps)
{
	close_fd(&mps->server_fd);
	mps->server = 0;
}

static void lose_control(struct td_mpsd *mps)
{
	lose_server(mps);
	close_fd(&mps->control_fd);
	mps->control = 0;
	mps->state = TD_MPSD_OFF;
}

/* Takes over the control daemon that lives in our directory. */
static void take_control(struct td_mpsd *mps, uint64_t now_ns)
{
	struct td_mps_place place;

	if (!td_mps_look(mps->directory, &place) || !place.alive) {
		fail(mps, now_ns, "the control daemon ended after its start: see control.log");
		return;
	}
	mps->control_fd = open_pidfd(place.pid);
	if (mps->control_fd < 0 || watch(mps, mps->control_fd)) {
		close_fd(&mps->control_fd);
		fail(mps, now_ns, "the process of the control daemon cannot be watched");
		return;
	}
	mps->control = place.pid;
	mps->state = TD_MPSD_READY;
	mps->started_ns = mps->look_ns = now_ns;
	mps->why[0] = 0;
}

/* Removes the files that a dead control daemon left in our directory. */
static void clear(const struct td_mpsd *mps)
{
	static const char *const names[] = {PID_FILE, "control"};
	char path[TD_MPS_PATH + 64];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", mps->directory, names[i]);
		(void)unlink(path);
	}
}

/* Makes a directory, or accepts one to which nobody else can write. Returns 0 or -errno. */
static int make_directory(const char *path, mode_t mode)
{
	struct stat st;

	if (!mkdir(path, mode))
		return 0;
	if (errno != EEXIST || lstat(path, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EPERM;
}

/* Makes the directory and its parent. Under root both can be entered by others' programs. */
static int make_directories(const struct td_mpsd *mps)
{
	mode_t mode = geteuid() ? 0700 : 0755;
	char above[TD_MPS_PATH], *slash;
	int r;

	snprintf(above, sizeof(above), "%s", mps->directory);
	slash = strrchr(above, '/');
	if (slash)
		*slash = 0;
	r = make_directory(above, mode);
	return r ? r : make_directory(mps->directory, mode);
}

static void start(struct td_mpsd *mps, uint64_t now_ns)
{
	struct td_mps_place place;
	char why[sizeof(mps->why)];
	int r;

	if (td_mps_look(mps->directory, &place)) {
		if (place.alive) {
			take_control(mps, now_ns);
			return;
		}
		clear(mps);
	}
	r = make_directories(mps);
	if (r) {
		snprintf(why, sizeof(why), "%.100s: %.50s", mps->directory, strerror(-r));
		fail(mps, now_ns, why);
		return;
	}
	mps->state = TD_MPSD_STARTING;
	call(mps, TD_MPS_START, "", now_ns);
}

static void take_server(struct td_mpsd *mps, pid_t pid, uint64_t now_ns)
{
	if (pid == mps->server)
		return;
	lose_server(mps);
	if (!pid)
		return;
	mps->server_fd = open_pidfd(pid);
	if (mps->server_fd < 0 || watch(mps, mps->server_fd)) {
		close_fd(&mps->server_fd);
		return;
	}
	mps->server = pid;
	mps->server_ns = now_ns;
}

/* Handles the result of a command that has ended. */
static void finish(
	struct td_mpsd *mps, enum td_mps_command what, bool good, const char *text, uint64_t now_ns)
{
	char command[64];

	/* The control daemon that got the command may have ended meanwhile. */
	if (what != TD_MPS_START && !mps->control)
		return;
	switch (what) {
	case TD_MPS_START:
		if (good)
			take_control(mps, now_ns);
		else
			fail(mps, now_ns, *text ? text : "the control daemon ended at once");
		break;
	case TD_MPS_LIST:
		take_server(mps, good ? td_mps_parse_list(text) : 0, now_ns);
		mps->state = mps->server ? mps->state : TD_MPSD_READY;
		if (!mps->server)
			break;
		snprintf(command, sizeof(command), "get_server_status %d\n", (int)mps->server);
		call(mps, TD_MPS_STATUS, command, now_ns);
		break;
	case TD_MPS_STATUS:
		mps->state = good && td_mps_parse_fault(text) ? TD_MPSD_FAULT : TD_MPSD_READY;
		break;
	case TD_MPS_TERMINATE:
	case TD_MPS_QUIT: /* finished when the control daemon's process ends */
	case TD_MPS_NONE: break;
	}
}

static void check_call(struct td_mpsd *mps, uint64_t now_ns)
{
	enum td_mps_command what = mps->call.what;
	bool killed = mps->call.killed;
	char text[512];
	int status = -1;
	ssize_t n;

	if (!mps->call.pid || waitpid(mps->call.pid, &status, WNOHANG) == 0)
		return;
	if (killed) {
		end_call(mps);
		return;
	}
	(void)fcntl(mps->call.out_fd, F_SETFL, O_NONBLOCK);
	n = read(mps->call.out_fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	end_call(mps);
	finish(mps, what, WIFEXITED(status) && !WEXITSTATUS(status), text, now_ns);
}

/* Handles the end of the server. Clients have lost their contexts; new ones get another server. */
static void server_has_ended(struct td_mpsd *mps, uint64_t now_ns)
{
	lose_server(mps);
	if (mps->state != TD_MPSD_READY)
		return;
	mps->state = TD_MPSD_FAULT;
	mps->look_ns = now_ns + LOOK_NS;
	snprintf(mps->why, sizeof(mps->why), "the server has ended: see server.log");
}

static void check_processes(struct td_mpsd *mps, uint64_t now_ns)
{
	if (has_ended(mps->server_fd))
		server_has_ended(mps, now_ns);
	if (!has_ended(mps->control_fd))
		return;
	lose_control(mps);
	if (mps->restarts || !mps->wanted) {
		mps->restarts = false;
		return;
	}
	if (now_ns > mps->started_ns + LASTED_NS)
		mps->failures = 0;
	fail(mps, now_ns, "the control daemon has ended: see control.log");
}

/* Kills both, because a new control daemon would find the old one's sockets. */
static void kill_both(const struct td_mpsd *mps)
{
	const int fds[] = {mps->server_fd, mps->control_fd};

	for (size_t i = 0; i < 2; i++)
		if (fds[i] >= 0)
			(void)syscall(SYS_pidfd_send_signal, fds[i], SIGKILL, NULL, 0);
}

/* Ends a command that takes too long. The control daemon then counts as hanging. */
static void check_time(struct td_mpsd *mps, uint64_t now_ns)
{
	if (!mps->call.pid || mps->call.killed || now_ns < mps->call.until_ns)
		return;
	kill_call(mps);
	/* The control daemon was told to end and has not, so kill it. */
	if (mps->state == TD_MPSD_STOPPING) {
		kill_both(mps);
		return;
	}
	fail(mps, now_ns, TD_MPS_PROGRAM " does not answer");
}

/* Removes the next client to terminate from the list. Returns its pid; 0: there is none. */
static pid_t take_client(struct td_mpsd *mps)
{
	for (size_t i = 0; i < TD_MPS_TERMINATE_MAX; i++) {
		pid_t client = mps->terminate[i];

		mps->terminate[i] = 0;
		if (client)
			return client;
	}
	return 0;
}

static void let_go(struct td_mpsd *mps, pid_t client, uint64_t now_ns)
{
	char command[64];

	snprintf(command, sizeof(command), "terminate_client %d %d\n", (int)mps->server,
		(int)client);
	call(mps, TD_MPS_TERMINATE, command, now_ns);
}

static void decide(struct td_mpsd *mps, uint64_t now_ns)
{
	pid_t client = mps->server ? take_client(mps) : 0;

	if (mps->control && (!mps->wanted || mps->restarts)) {
		if (mps->state == TD_MPSD_STOPPING)
			return;
		mps->state = TD_MPSD_STOPPING;
		call(mps, TD_MPS_QUIT, mps->restarts ? "quit -t 0\n" : "quit\n", now_ns);
	} else if (mps->control && client) {
		let_go(mps, client, now_ns);
	} else if (mps->control && now_ns >= mps->look_ns) {
		mps->asked_ns = now_ns;
		mps->finds = mps->is_sought ? mps->finds + 1 : 0;
		mps->is_sought = false;
		mps->look_ns = now_ns + LOOK_NS;
		call(mps, TD_MPS_LIST, "get_server_list\n", now_ns);
	} else if (!mps->control && !mps->wanted) {
		mps->state = TD_MPSD_OFF;
		mps->failures = 0;
		mps->retry_ns = 0;
	} else if (!mps->control && now_ns >= mps->retry_ns) {
		start(mps, now_ns);
	}
}

static bool has_client(const struct td_mpsd *mps)
{
	for (size_t i = 0; i < TD_MPS_TERMINATE_MAX; i++)
		if (mps->server && mps->terminate[i])
			return true;
	return false;
}

static uint64_t next_ns(const struct td_mpsd *mps, uint64_t now_ns)
{
	/* Without a pidfd, look now and then whether the command has ended. */
	if (mps->call.killed)
		return mps->call.pid_fd >= 0 ? NEVER_NS : now_ns + LOOK_NS;
	if (mps->call.pid)
		return mps->call.until_ns;
	if (!mps->control)
		return mps->wanted ? mps->retry_ns : NEVER_NS;
	return mps->state == TD_MPSD_STOPPING ? NEVER_NS : has_client(mps) ? 0 : mps->look_ns;
}

uint64_t td_mpsd_step(struct td_mpsd *mps, uint64_t now_ns)
{
	struct epoll_event events[4];

	if (epoll_wait(mps->epoll_fd, events, 4, 0) > 0 || mps->call.killed) {
		check_call(mps, now_ns);
		check_processes(mps, now_ns);
	}
	check_time(mps, now_ns);
	if (!mps->call.pid)
		decide(mps, now_ns);
	return next_ns(mps, now_ns);
}

void td_mpsd_want(struct td_mpsd *mps, bool wanted)
{
	mps->wanted = wanted;
}

void td_mpsd_restart(struct td_mpsd *mps)
{
	mps->restarts = mps->control != 0;
}

uint64_t td_mpsd_find(struct td_mpsd *mps)
{
	uint32_t doublings = mps->finds < RETRY_DOUBLINGS ? mps->finds : RETRY_DOUBLINGS;

	if (mps->server || mps->state != TD_MPSD_READY || mps->call.pid)
		return NEVER_NS;
	/* Without a GPU there is never a server, and each question starts a process. */
	mps->is_sought = true;
	return mps->look_ns = td_min_u64(mps->look_ns, mps->asked_ns + (FIND_NS << doublings));
}

void td_mpsd_terminate(struct td_mpsd *mps, pid_t client)
{
	for (size_t i = 0; i < TD_MPS_TERMINATE_MAX; i++) {
		if (mps->terminate[i] && mps->terminate[i] != client)
			continue;
		mps->terminate[i] = client;
		return;
	}
}

int td_mpsd_spawn(const struct td_mpsd *mps, const char *program, char *const *argv, pid_t *ret)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), r;

	if (null < 0)
		return -errno;
	r = spawn(mps, program, argv, null, null, ret);
	close(null);
	return r;
}

int td_mpsd_fd(const struct td_mpsd *mps)
{
	return mps->epoll_fd;
}

int td_mpsd_init(struct td_mpsd *mps, const char *directory, const char *gpu)
{
	*mps = (struct td_mpsd){.control_fd = -1,
		.server_fd = -1,
		.call = {.pid_fd = -1, .out_fd = -1},
		.epoll_fd = -1};
	if (snprintf(mps->directory, sizeof(mps->directory), "%s", directory) >=
			(int)sizeof(mps->directory) ||
		snprintf(mps->gpu, sizeof(mps->gpu), "%s", gpu) >= (int)sizeof(mps->gpu))
		return -ENAMETOOLONG;
	mps->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return mps->epoll_fd < 0 ? -errno : 0;
}

void td_mpsd_deinit(struct td_mpsd *mps)
{
	pid_t pid;
	int out_fd;

	if (mps->control && mps->call.what != TD_MPS_QUIT && !run(mps, "quit\n", &pid, &out_fd))
		close(out_fd);
	end_call(mps);
	lose_control(mps);
	close_fd(&mps->epoll_fd);
}
