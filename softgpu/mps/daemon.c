/*
 * The control daemon: one thread, one loop. It has the socket of the pipe directory, starts a
 * server when the first program of a user asks for one, and carries out commands. quit and
 * shutdown_server answer when the clients are gone, which is looked for every LOOK_MS.
 */
#include "softgpu/mps/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "cuda/types.h"
#include "softgpu/mps/command.h"
#include "softgpu/mps/servers.h"
#include "softgpu/server/client.h"
#include "softgpu/server/mps_pipe.h"

#define PEERS_MAX 64
#define LOOK_MS   20

/* A client that sends a command and gets one answer. */
struct peer {
	int fd;
	struct ucred who;
	bool waits;        /* it waits until a server has ended */
	pid_t server;      /* the server that it waits for; 0: all servers */
	uint64_t until_ns; /* when that server is ended by force; UINT64_MAX: never */
};

static struct {
	struct mps_servers servers;
	struct peer peers[PEERS_MAX];
	unsigned peer_count;
	bool quitting, over;
	int listen_fd, signal_fd, log_fd;
	char answer[SG_MPS_ANSWER_MAX];
	size_t used;
} daemon_;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void log_line(const char *format, ...)
{
	struct timespec now;
	struct tm tm;
	va_list args;
	char text[256];

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	dprintf(daemon_.log_fd, "[%04d-%02d-%02d %02d:%02d:%02d.%03d Control %6d] %s\n",
		tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		(int)(now.tv_nsec / 1000000), (int)getpid(), text);
}

/* Adds to the answer. */
static void say(const char *format, ...)
{
	size_t left = sizeof(daemon_.answer) - daemon_.used;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(daemon_.answer + daemon_.used, left, format, args);
	va_end(args);
	daemon_.used += n < 0 ? 0 : (size_t)n < left ? (size_t)n : left - 1;
}

/* Sends the answer that was written. `good` tells whether the command succeeded. */
static void answer(const struct peer *peer, bool good)
{
	char packet[SG_MPS_ANSWER_MAX + 1];

	packet[0] = good ? '+' : '-';
	memcpy(packet + 1, daemon_.answer, daemon_.used);
	(void)!send(peer->fd, packet, daemon_.used + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	daemon_.used = 0;
}

/* -- programs -- */

/* A daemon serves its own user; root's serves all. */
static bool may_use(uid_t uid)
{
	return uid == geteuid() || !geteuid();
}

static bool connect_program(const struct peer *peer)
{
	struct mps_server *server = mps_server_of(&daemon_.servers, peer->who.uid);
	char why[160] = "this daemon is another user's";

	if (daemon_.quitting) {
		say("%d", CUDA_ERROR_MPS_SERVER_NOT_READY);
		return false;
	}
	if (!server && may_use(peer->who.uid))
		server = mps_server_start(&daemon_.servers, peer->who.uid, why, sizeof(why));
	if (!server) {
		log_line("User %u, process %d: no server: %s", (unsigned)peer->who.uid,
			(int)peer->who.pid, why);
		say("%d", CUDA_ERROR_MPS_CONNECTION_FAILED);
		return false;
	}
	log_line("User %u, process %d: server %d", (unsigned)peer->who.uid, (int)peer->who.pid,
		(int)server->pid);
	say("%d %s", (int)server->pid, daemon_.servers.softgpu);
	return true;
}

/* -- commands -- */

static bool no_server(pid_t pid)
{
	say("there is no MPS server %d: see get_server_list\n", (int)pid);
	return false;
}

static bool tell_report(const struct sg_mps_command *command, const struct mps_server *server)
{
	struct mps_report report;

	if (mps_server_report(server, &report))
		return no_server(command->server);
	switch (command->verb) {
	case SG_MPS_VERB_get_server_status: say("%s\n", report.fault ? "FAULT" : "ACTIVE"); break;
	case SG_MPS_VERB_get_active_thread_percentage: say("%.1f\n", report.percent); break;
	default:
		for (uint32_t i = 0; i < report.client_count; i++)
			say("%u\n", report.clients[i]);
		break;
	}
	return true;
}

static bool start_server(const struct sg_mps_command *command)
{
	char why[160];

	if (!may_use(command->uid)) {
		say("only root may start a server of another user\n");
		return false;
	}
	if (mps_server_of(&daemon_.servers, command->uid)) {
		say("user %u has a server\n", (unsigned)command->uid);
		return false;
	}
	if (mps_server_start(&daemon_.servers, command->uid, why, sizeof(why)))
		return true;
	say("%s\n", why);
	return false;
}

/* The answer comes later. */
static void wait_for_end(struct peer *peer, const struct sg_mps_command *command)
{
	peer->waits = true;
	peer->server = command->server;
	peer->until_ns =
		command->force ? td_time_now_ns() + command->seconds * TD_NS_PER_S : UINT64_MAX;
	daemon_.quitting |= !command->server;
}

static void say_limit(uint64_t bytes)
{
	if (bytes)
		say("%lluM\n", (unsigned long long)(bytes >> 20));
	else
		say("none\n");
}

/* Commands about one server. */
static bool run_on_server(const struct sg_mps_command *command, const struct mps_server *server)
{
	switch (command->verb) {
	case SG_MPS_VERB_terminate_client:
		if (!mps_server_terminate(server, command->client))
			return true;
		say("server %d has no client %d\n", (int)command->server, (int)command->client);
		return false;
	case SG_MPS_VERB_set_device_pinned_mem_limit:
		if (mps_server_set_limit(server, command->device, command->bytes)) {
			say("server %d has no device %u\n", (int)command->server, command->device);
			return false;
		}
		say_limit(command->bytes);
		return true;
	case SG_MPS_VERB_set_active_thread_percentage:
		if (mps_server_set_percent(server, command->percent))
			return no_server(command->server);
		say("%.1f\n", command->percent);
		return true;
	default: return tell_report(command, server);
	}
}

static bool run_command(struct peer *peer, const struct sg_mps_command *command)
{
	const struct mps_server *server = mps_server_find(&daemon_.servers, command->server);
	char help[1024];

	if (command->server && !server)
		return no_server(command->server);
	switch (command->verb) {
	case SG_MPS_VERB_get_server_list:
		for (unsigned i = 0; i < daemon_.servers.count; i++)
			say("%d\n", (int)daemon_.servers.server[i].pid);
		return true;
	case SG_MPS_VERB_start_server: return start_server(command);
	case SG_MPS_VERB_set_default_active_thread_percentage:
		daemon_.servers.percent = command->percent;
		say("%.1f\n", command->percent);
		return true;
	case SG_MPS_VERB_get_default_active_thread_percentage:
		say("%.1f\n", daemon_.servers.percent);
		return true;
	case SG_MPS_VERB_set_default_device_pinned_mem_limit:
		daemon_.servers.limits[command->device] = command->bytes;
		say_limit(command->bytes);
		return true;
	case SG_MPS_VERB_get_default_device_pinned_mem_limit:
		say_limit(daemon_.servers.limits[command->device]);
		return true;
	case SG_MPS_VERB_help: say("%s", sg_mps_command_help(help, sizeof(help))); return true;
	case SG_MPS_VERB_shutdown_server:
	case SG_MPS_VERB_quit: wait_for_end(peer, command); return true;
	default: return run_on_server(command, server);
	}
}

/* Commands are for the user whose daemon it is, and for root. */
static bool may_command(uid_t uid)
{
	return uid == geteuid() || !uid;
}

/* Carries out the peer's command. Returns whether the peer has its answer and can be dropped. */
static bool serve(struct peer *peer, const char *line)
{
	struct sg_mps_command command;
	char error[512];
	bool good;

	daemon_.used = 0;
	if (!strcmp(line, SG_MPS_CONNECT)) {
		good = connect_program(peer);
	} else if (!may_command(peer->who.uid)) {
		say("this daemon is another user's\n");
		good = false;
	} else if (sg_mps_command_parse(line, &command, error, sizeof(error))) {
		say("%s\n", error);
		good = false;
	} else {
		log_line("User %u: %s", (unsigned)peer->who.uid, line);
		good = run_command(peer, &command);
	}
	if (peer->waits)
		return false;
	answer(peer, good);
	return true;
}

static void drop_peer(struct peer *peer)
{
	close(peer->fd);
	*peer = daemon_.peers[--daemon_.peer_count];
}

static void accept_peer(void)
{
	struct peer peer = {.fd = accept4(daemon_.listen_fd, NULL, NULL, SOCK_CLOEXEC)};
	socklen_t len = sizeof(peer.who);

	if (peer.fd < 0)
		return;
	if (daemon_.peer_count == PEERS_MAX ||
		getsockopt(peer.fd, SOL_SOCKET, SO_PEERCRED, &peer.who, &len) < 0)
		close(peer.fd);
	else
		daemon_.peers[daemon_.peer_count++] = peer;
}

static void read_peer(struct peer *peer)
{
	char line[512];
	ssize_t n = recv(peer->fd, line, sizeof(line) - 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	line[n > 0 ? n : 0] = 0;
	line[strcspn(line, "\n")] = 0;
	/* A waiting client has no more to say. */
	if (n <= 0 || peer->waits) {
		/* A quit is cancelled when the peer that waits for it has gone. */
		daemon_.quitting &= !(peer->waits && !peer->server);
		drop_peer(peer);
	} else if (serve(peer, line)) {
		drop_peer(peer);
	}
}

/* -- the end -- */

static bool is_free(const struct mps_server *server)
{
	struct mps_report report;

	return mps_server_report(server, &report) || !report.client_count;
}

/* Ends the servers that the peer waits for, if their clients are gone or its time is over. */
static void look_for_end(struct peer *peer)
{
	bool force = td_time_now_ns() >= peer->until_ns;

	for (unsigned i = daemon_.servers.count; i-- > 0;) {
		struct mps_server *server = &daemon_.servers.server[i];

		if ((!peer->server || server->pid == peer->server) && (force || is_free(server)))
			mps_server_end(&daemon_.servers, server);
	}
	if (peer->server ? mps_server_find(&daemon_.servers, peer->server) != NULL
			 : daemon_.servers.count > 0)
		return;
	daemon_.over |= !peer->server;
	answer(peer, true);
	drop_peer(peer);
}

static void look_for_ends(void)
{
	for (unsigned i = daemon_.peer_count; i-- > 0;)
		if (daemon_.peers[i].waits)
			look_for_end(&daemon_.peers[i]);
}

static bool somebody_waits(void)
{
	for (unsigned i = 0; i < daemon_.peer_count; i++)
		if (daemon_.peers[i].waits)
			return true;
	return false;
}

static void read_signal(void)
{
	struct signalfd_siginfo info;

	if (read(daemon_.signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD)
		mps_servers_reap(&daemon_.servers);
	else
		daemon_.over = true;
}

static void loop(void)
{
	while (!daemon_.over) {
		struct pollfd fds[PEERS_MAX + 2] = {{.fd = daemon_.listen_fd, .events = POLLIN},
			{.fd = daemon_.signal_fd, .events = POLLIN}};
		unsigned count = daemon_.peer_count;

		for (unsigned i = 0; i < count; i++)
			fds[i + 2] = (struct pollfd){.fd = daemon_.peers[i].fd, .events = POLLIN};
		if (poll(fds, count + 2, somebody_waits() ? LOOK_MS : -1) < 0 && errno != EINTR)
			return;
		if (fds[1].revents)
			read_signal();
		for (unsigned i = count; i-- > 0;)
			if (fds[i + 2].revents)
				read_peer(&daemon_.peers[i]);
		if (fds[0].revents)
			accept_peer();
		look_for_ends();
	}
}

/* -- the beginning -- */

/* Returns a descriptor, or -errno; -EBUSY if another daemon has it. */
static int take_lock(const char *directory)
{
	char path[PATH_MAX];
	int fd;

	if (mkdir(directory, 0755) < 0 && errno != EEXIST)
		return -errno;
	snprintf(path, sizeof(path), "%s/control_lock", directory);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	close(fd);
	return -EBUSY;
}

static int listen_in(const char *directory)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, r = sg_mps_pipe_socket(directory, address.sun_path, sizeof(address.sun_path));

	if (r)
		return r;
	unlink(address.sun_path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fd, PEERS_MAX) < 0) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	/* Programs of other users get an answer, too. */
	(void)chmod(address.sun_path, 0666);
	return fd;
}

static int open_log(const char *directory)
{
	char path[PATH_MAX];
	int fd;

	(void)mkdir(directory, 0755);
	snprintf(path, sizeof(path), "%s/control.log", directory);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	return fd < 0 ? -errno : fd;
}

static int write_pid(const char *directory)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/" SG_MPS_PIDFILE, directory);
	file = fopen(path, "we");
	if (!file)
		return -errno;
	fprintf(file, "%d\n", (int)getpid());
	return fclose(file) ? -errno : 0;
}

static void open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	daemon_.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int fail(int ready_fd, const char *what, const char *why)
{
	if (ready_fd >= 0)
		dprintf(ready_fd, "%s: %s", what, why);
	else
		fprintf(stderr, "nvidia-cuda-mps-control: %s: %s\n", what, why);
	return 1;
}

static void set_defaults(const char *log_directory)
{
	const char *percent = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	const char *limits = getenv(SG_MPS_LIMIT_ENV);
	char dir[PATH_MAX], real[PATH_MAX];

	daemon_.servers.log_directory = log_directory;
	daemon_.servers.percent = 100;
	if (percent)
		(void)sg_mps_parse_percent(percent, &daemon_.servers.percent);
	if (limits)
		(void)sg_mps_parse_limits(limits, daemon_.servers.limits);
	/* Servers and programs have shares and limits of their own. */
	unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	unsetenv(SG_MPS_LIMIT_ENV);
	if (sg_dir(dir, sizeof(dir)))
		snprintf(daemon_.servers.softgpu, sizeof(daemon_.servers.softgpu), "%s",
			realpath(dir, real) ? real : dir);
}

int mps_daemon_run(const char *pipe_directory, const char *log_directory, int ready_fd)
{
	char path[PATH_MAX];
	int lock_fd = take_lock(pipe_directory), r;

	if (lock_fd == -EBUSY)
		return fail(
			ready_fd, pipe_directory, "An instance of this daemon is already running");
	if (lock_fd < 0)
		return fail(ready_fd, pipe_directory, strerror(-lock_fd));
	daemon_.log_fd = open_log(log_directory);
	if (daemon_.log_fd < 0)
		return fail(ready_fd, log_directory, strerror(-daemon_.log_fd));
	open_signals();
	set_defaults(log_directory);
	daemon_.listen_fd = listen_in(pipe_directory);
	r = daemon_.listen_fd < 0 ? daemon_.listen_fd : write_pid(pipe_directory);
	if (r < 0)
		return fail(ready_fd, pipe_directory, strerror(-r));
	log_line("Start");
	if (ready_fd >= 0) {
		(void)!write(ready_fd, "", 1);
		close(ready_fd);
	}
	loop();
	while (daemon_.servers.count)
		mps_server_end(&daemon_.servers, &daemon_.servers.server[0]);
	snprintf(path, sizeof(path), "%s/" SG_MPS_PIDFILE, pipe_directory);
	unlink(path);
	if (!sg_mps_pipe_socket(pipe_directory, path, sizeof(path)))
		unlink(path);
	log_line("Exit");
	return 0;
}
