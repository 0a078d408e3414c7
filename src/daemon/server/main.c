/*
 * tandemd: the daemon of one node. Sets up options, socket, lock and signals, and runs the loop.
 *
 * There is one daemon per socket: <socket>.lock is held for the daemon's life and contains its pid.
 * A socket file left behind means that a daemon died. Its clients connect again first, so no gate
 * opens before SETTLE_NS.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "daemon/server/peers/peer.h"
#include "gpu/canary.h"
#include "gpu/checkpoint.h"
#include "proto/socket.h"

#define SETTLE_NS (300 * TD_NS_PER_MS)
#define BACKLOG   512

static struct td_server server;
static struct td_loop loop;
static struct td_source signals;

static void signal_ready(struct td_source *source, uint32_t events)
{
	struct signalfd_siginfo info;

	(void)events;
	if (read(source->fd, &info, sizeof(info)) == sizeof(info))
		loop.stop = true;
}

/*
 * Makes the socket's directory, private to this user. Makes no directories above it, so that a
 * mistyped path leaves no trace (RuntimeDirectory= of systemd makes none outside /run either).
 * Returns 0, or -errno with the reason in err.
 */
static int make_directory(const char *path, struct td_err *err)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	const char *slash = strrchr(path, '/');
	char *above;

	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	if (!*dir || !mkdir(dir, geteuid() ? 0700 : 0755) || errno == EEXIST)
		return 0;
	if (errno != ENOENT)
		return td_err_set(err, -errno, "%s", strerror(errno));
	above = strrchr(dir, '/');
	*above = 0;
	return td_err_set(err, -ENOENT,
		"\"%s\" is not there: expected at most the last directory of the path to be new",
		dir);
}

/*
 * Takes the lock. Returns its descriptor, or -errno. -EWOULDBLOCK comes with the owner's pid in
 * *ret_owner.
 */
static int take_lock(const char *path, int *ret_owner)
{
	char name[PATH_MAX], text[16] = "";
	int fd;

	snprintf(name, sizeof(name), "%s.lock", path);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int r = -errno;

		*ret_owner = pread(fd, text, sizeof(text) - 1, 0) > 0 ? atoi(text) : 0;
		close(fd);
		return r;
	}
	snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, strlen(text), 0) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

/*
 * Returns a listening socket, or -errno. *ret_stale tells whether an earlier daemon left a socket
 * file behind. The caller holds the lock, so no other daemon listens there.
 */
static int listen_at(const char *path, bool *ret_stale)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t mask;
	int fd, r;

	strcpy(address.sun_path, path);
	*ret_stale = unlink(path) == 0;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* A system daemon serves every user. Each user may change only his own jobs (tools.c). */
	mask = umask(geteuid() ? 0077 : 0);
	r = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0
		    ? -errno
		    : 0;
	umask(mask);
	if (!r)
		return fd;
	close(fd);
	return r;
}

/* Tells systemd that the daemon is ready, by one datagram. */
static void notify_ready(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (!path || strlen(path) >= sizeof(address.sun_path))
		return;
	strcpy(address.sun_path, path);
	if (*path == '@')
		address.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, "READY=1", 7, MSG_NOSIGNAL, (struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
	close(fd);
}

static void usage(FILE *out)
{
	struct td_options options;
	struct td_option_row row;

	fprintf(out, "usage: tandemd [--socket PATH] [--config FILE] [--set KEY=VALUE]... "
		     "[--ready-fd N] [--verbose]\n\n"
		     "Shares the GPUs of this node among the programs started by `tandem run`.\n\n"
		     "Options for --set, the file, and `tandem set` (default):\n");
	td_options_init(&options);
	for (size_t i = 0; td_options_row(&options, i, &row); i++)
		fprintf(out, "  %-16s %s (%s)\n", row.key, row.help, row.value);
}

struct arguments {
	char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
	/*
	 * This descriptor is sent "1" once connections are accepted, or the reason why they are
	 * not; -1: none.
	 */
	int ready_fd;
};

static int set_pair(char *pair, struct td_err *err)
{
	char *equals = strchr(pair, '=');

	if (!equals)
		return td_err_set(
			err, -EINVAL, "--set: \"%.64s\" is not valid: expected KEY=VALUE", pair);
	*equals = 0;
	return td_options_set(&server.node.options, pair, equals + 1, err);
}

static int parse_descriptor(const char *text, int *ret, struct td_err *err)
{
	struct td_err why = {0};
	uint64_t fd = 0;
	int r = td_parse_u64(text, 0, INT_MAX, &fd, &why);

	if (r)
		return td_err_set(err, r, "--ready-fd: %.400s", why.msg);
	if (fcntl((int)fd, F_GETFD) < 0)
		return td_err_set(
			err, -EBADF, "--ready-fd: \"%.64s\" is not an open descriptor", text);
	*ret = (int)fd;
	return 0;
}

/* Returns 0 to go on, 1 after help, or -errno with *err. The node's options must be initialised. */
static int parse_arguments(int argc, char **argv, struct arguments *ret, struct td_err *err)
{
	static const struct option longopts[] = {{"socket", required_argument, NULL, 's'},
		{"config", required_argument, NULL, 'c'}, {"set", required_argument, NULL, 'o'},
		{"ready-fd", required_argument, NULL, 'r'}, {"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0}};
	int c, r = 0;

	opterr = 0;
	while (!r && (c = getopt_long(argc, argv, ":hV", longopts, NULL)) != -1) {
		r = td_check_optarg(argv, err);
		if (r)
			return r;
		switch (c) {
		case 's':
			r = td_socket_check("--socket", optarg, 0, err);
			if (r)
				return r;
			strcpy(ret->socket, optarg);
			break;
		case 'c': r = td_options_load(&server.node.options, optarg, err); break;
		case 'o': r = set_pair(optarg, err); break;
		case 'r': r = parse_descriptor(optarg, &ret->ready_fd, err); break;
		case 'v': td_log_set_level(TD_LOG_DEBUG); break;
		case 'h': usage(stdout); return 1;
		case 'V': puts("tandemd " TANDEM_VERSION); return 1;
		default: return td_refuse_option(c, argv, longopts, "tandemd --help", err);
		}
	}
	if (!r && optind < argc)
		return td_err_set(err, -EINVAL, "\"%.64s\" is not expected: see tandemd --help",
			argv[optind]);
	return r;
}

/* Raises the limit on descriptors as far as possible, since each connection needs one. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int watch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* If whoever started the daemon ignores it, the ends of the daemon's children are lost. */
	signal(SIGCHLD, SIG_DFL);
	signals = (struct td_source){
		signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), signal_ready, false};
	return signals.fd < 0 ? -errno : td_loop_add(&loop, &signals);
}

/* Sends the text to the program that started the daemon, and closes the pipe. */
static void tell_starter(const struct arguments *arguments, const char *text)
{
	if (arguments->ready_fd >= 0 && write(arguments->ready_fd, text, strlen(text)) > 0)
		close(arguments->ready_fd);
}

static int run_daemon(const struct arguments *arguments)
{
	int owner = 0, lock_fd, listen_fd, r;
	struct td_options options = server.node.options;
	struct td_err err = {0};
	bool stale;

	if (make_directory(arguments->socket, &err)) {
		td_log(TD_LOG_ERROR, "socket=%s %s", arguments->socket, err.msg);
		tell_starter(arguments, err.msg);
		return 1;
	}
	lock_fd = take_lock(arguments->socket, &owner);
	if (lock_fd == -EWOULDBLOCK) {
		td_log(TD_LOG_ERROR, "socket=%s pid=%d another tandemd is running",
			arguments->socket, owner);
		tell_starter(arguments, "another tandemd is running");
		return 1;
	}
	listen_fd = lock_fd < 0 ? lock_fd : listen_at(arguments->socket, &stale);
	if (listen_fd < 0) {
		td_log(TD_LOG_ERROR, "socket=%s %s", arguments->socket, strerror(-listen_fd));
		tell_starter(arguments, strerror(-listen_fd));
		return 1;
	}
	r = td_loop_init(&loop, td_server_turn, &server);
	if (!r)
		r = td_server_init(&server, &loop, listen_fd, arguments->socket);
	if (!r)
		r = watch_signals();
	if (r)
		tell_starter(arguments, strerror(-r));
	if (!r) {
		server.node.options = options;
		td_node_options_changed(&server.node, td_time_now_ns(), "started");
		server.node.settle_ns = stale ? td_time_now_ns() + SETTLE_NS : 0;
		tell_starter(arguments, "1");
		notify_ready();
		td_log(TD_LOG_INFO, "socket=%s policy=%s ready", arguments->socket,
			server.node.policy->name);
		r = td_loop_run(&loop);
		unlink(arguments->socket);
		td_server_deinit(&server);
	}
	td_loop_deinit(&loop);
	close(lock_fd);
	if (r)
		td_log(TD_LOG_ERROR, "%s", strerror(-r));
	return r ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {.ready_fd = -1};
	struct td_err err = {0}, no_socket = {0};
	int r;

	/*
	 * The daemon starts itself as a canary this way (server/gpus/canary.c). It is not a
	 * documented option, since users do not need it.
	 */
	if (argc == 3 && !strcmp(argv[1], TD_CANARY_ARGUMENT))
		return (int)td_canary_run((uid_t)strtoul(argv[2], NULL, 10));
	/* The daemon also starts itself for the driver's checkpoints (server/gpus/helper.c). */
	if (argc > 1 && !strcmp(argv[1], TD_CHECKPOINT_ARGUMENT))
		return (int)td_checkpoint_main(argc - 2, argv + 2);
	if (td_socket_path_typed(arguments.socket, sizeof(arguments.socket), &no_socket))
		arguments.socket[0] = 0;
	td_options_init(&server.node.options);
	r = parse_arguments(argc, argv, &arguments, &err);
	if (r > 0)
		return td_output_end("tandemd", 0, 1);
	if (r < 0 || !arguments.socket[0]) {
		fprintf(stderr, "tandemd: %s\n", r < 0 ? err.msg : no_socket.msg);
		return 2;
	}
	allow_descriptors();
	return run_daemon(&arguments);
}
