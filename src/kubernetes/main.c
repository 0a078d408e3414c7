/*
 * tandem-device-plugin: offers the GPUs of this node to Kubernetes in hundredths.
 *
 *   kubelet --ListAndWatch, Allocate--> tandem-device-plugin --list of GPUs--> tandemd
 *           <-------Register-----------
 *
 * One thread and one loop: the kubelet's connections (grpc.h, service.h), the registration
 * (kubelet.h), and the daemon's list of GPUs, which is read once in a while (gpus.h). A kubelet
 * that starts deletes the sockets of all plugins, so the folder is watched.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/err.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "kubernetes/gpus.h"
#include "kubernetes/kubelet.h"
#include "kubernetes/service.h"
#include "proto/socket.h"
#ifdef TD_HAVE_PLACED
#include "kubernetes/sched/account.h"
#include "kubernetes/sched/placed.h"
#endif

#define PROGRAM     "tandem-device-plugin"
#define EXIT_USAGE  125
#define CONNECTIONS 16u
#define ENDPOINT    "tandem.sock"
#define PATIENCE_MS 1000u  /* for the API server */
#define NOT_YET     ".new" /* behind the name of a socket that does not listen yet */

struct options {
	const char *dir, *resource, *library, *cdi;
	const char *node; /* NULL: nobody is asked where pods were placed */
	const char *server, *token_file, *ca_file;
	uint64_t period_ns;
};

static const struct td_command_option rows[] = {
#define OPTION(name, letter, argument, help) {name, argument, help, letter},
#include "kubernetes/options.def"
#undef OPTION
};

struct plugin {
	struct options options;
	char socket[256];     /* the path of tandemd's socket */
	char socket_dir[256]; /* the folder of that socket */
	struct sockaddr_un address;
	struct td_node_gpus gpus;
	struct td_service service;
	struct td_kubelet kubelet;
	struct td_grpc *connection[CONNECTIONS]; /* NULL: a free entry */
	uint32_t next_place;                     /* the entry at which find_place() begins */
	int listener, inotify, signals;          /* listener -1: the socket must be made */
	uint64_t ask_ns;                         /* when to ask the daemon again */
};

static int fail(const char *text)
{
	fprintf(stderr, PROGRAM ": %s\n", text);
	return EXIT_USAGE;
}

/* -- the plugin's socket -- */

/* The socket has its name only once it listens, so nobody who sees it is refused. */
static int listen_at(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;
	struct sockaddr_un before = *address;

	if (fd < 0)
		return -errno;
	strcat(before.sun_path, NOT_YET);
	(void)unlink(before.sun_path);
	if (!bind(fd, (struct sockaddr *)&before, sizeof(before)) && !listen(fd, SOMAXCONN) &&
		!rename(before.sun_path, address->sun_path))
		return fd;
	r = -errno;
	close(fd);
	(void)unlink(before.sun_path);
	return r;
}

static void close_all(struct plugin *plugin)
{
	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		td_grpc_close(plugin->connection[i]);
		plugin->connection[i] = NULL;
	}
	if (plugin->listener >= 0)
		close(plugin->listener);
	plugin->listener = -1;
}

/* Makes the plugin's socket, and registers it with the kubelet. */
static int begin(struct plugin *plugin)
{
	close_all(plugin);
	plugin->listener = listen_at(&plugin->address);
	if (plugin->listener < 0)
		return plugin->listener;
	td_kubelet_restarted(&plugin->kubelet);
	return 0;
}

/*
 * Returns a free entry of connection[]. If there is none, disconnects a peer without an open call
 * and returns its entry; the search begins behind the last result, so the newest peer comes last.
 * Returns CONNECTIONS if all peers have open calls.
 */
static uint32_t find_place(struct plugin *plugin)
{
	for (uint32_t i = 0; i < CONNECTIONS; i++)
		if (!plugin->connection[i])
			return i;
	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		uint32_t place = plugin->next_place++ % CONNECTIONS;

		if (!td_grpc_is_idle(plugin->connection[place]))
			continue;
		td_grpc_close(plugin->connection[place]);
		plugin->connection[place] = NULL;
		return place;
	}
	return CONNECTIONS;
}

static void take_connection(struct plugin *plugin)
{
	const struct td_grpc_events events = {
		.called = td_service_called, .closed = td_service_closed, .arg = &plugin->service};
	int fd = accept4(plugin->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	uint32_t place;

	if (fd < 0)
		return;
	place = find_place(plugin);
	if (place < CONNECTIONS)
		plugin->connection[place] = td_grpc_open(fd, true, &events);
	if (place == CONNECTIONS || !plugin->connection[place])
		close(fd);
}

/* -- the kubelet's folder -- */

/*
 * Reads the changes in the kubelet's folder: the plugin's socket was deleted, or kubelet.sock was
 * made.
 */
static int read_folder(struct plugin *plugin)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = read(plugin->inotify, events, sizeof(events));
	bool begins = false, asks = false;

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *event = (const struct inotify_event *)(events + at);
		bool is_made = event->mask & IN_CREATE;

		at += (ssize_t)(sizeof(*event) + event->len);
		if (event->mask & (IN_IGNORED | IN_DELETE_SELF))
			return -ENOENT;
		begins |= (event->mask & IN_Q_OVERFLOW) != 0;
		asks |= (event->mask & IN_Q_OVERFLOW) != 0;
		if (!event->len)
			continue;
		begins |= !is_made && !strcmp(event->name, ENDPOINT);
		asks |= is_made && !strcmp(event->name, "kubelet.sock");
	}
	/* begin() itself deletes the old socket; that event must not cause another begin(). */
	if (begins && access(plugin->address.sun_path, F_OK))
		return begin(plugin);
	if (asks)
		td_kubelet_restarted(&plugin->kubelet);
	return 0;
}

/* -- the loop -- */

static uint64_t ask_gpus(struct plugin *plugin, uint64_t now_ns)
{
	bool answered = plugin->gpus.daemon_answers;

	if (now_ns < plugin->ask_ns)
		return plugin->ask_ns;
	plugin->ask_ns = now_ns + plugin->options.period_ns;
	if (!td_node_gpus_ask(&plugin->gpus, plugin->socket))
		return plugin->ask_ns;
	if (answered && !plugin->gpus.daemon_answers)
		td_log(TD_LOG_WARN, "socket=%s no daemon answers: no GPU is offered",
			plugin->socket);
	for (uint32_t i = 0; i < plugin->gpus.count; i++)
		td_log(TD_LOG_INFO, "gpu=%s %s", plugin->gpus.gpu[i].uuid,
			plugin->gpus.gpu[i].is_healthy ? "healthy" : "unhealthy");
	td_service_tell(&plugin->service);
	return plugin->ask_ns;
}

enum {
	FD_SIGNAL,
	FD_FOLDER,
	FD_LISTENER,
	FD_KUBELET,
	FD_CONNECTIONS,
	FD_N = FD_CONNECTIONS + CONNECTIONS
};

static void turn_connections(struct plugin *plugin)
{
	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		if (!plugin->connection[i] || !td_grpc_turn(plugin->connection[i]))
			continue;
		td_grpc_close(plugin->connection[i]);
		plugin->connection[i] = NULL;
	}
}

static int timeout_ms(uint64_t wakeup_ns, uint64_t now_ns)
{
	uint64_t ms = (td_sub_sat(wakeup_ns, now_ns) + TD_NS_PER_MS - 1) / TD_NS_PER_MS;

	return ms > 60000 ? 60000 : (int)ms;
}

static struct pollfd poll_for(const struct td_grpc *grpc)
{
	return grpc ? (struct pollfd){td_grpc_fd(grpc), td_grpc_events(grpc), 0}
		    : (struct pollfd){-1, 0, 0};
}

/* Serves until a signal comes (returns 0) or the folder is gone (returns -errno). */
static int serve(struct plugin *plugin)
{
	struct pollfd fds[FD_N];

	for (;;) {
		uint64_t now_ns = td_time_now_ns(), wakeup_ns = ask_gpus(plugin, now_ns);

		turn_connections(plugin);
		wakeup_ns = td_min_u64(
			wakeup_ns, td_kubelet_turn(&plugin->kubelet,
					   td_service_is_watched(&plugin->service), now_ns));
		fds[FD_SIGNAL] = (struct pollfd){plugin->signals, POLLIN, 0};
		fds[FD_FOLDER] = (struct pollfd){plugin->inotify, POLLIN, 0};
		fds[FD_LISTENER] = (struct pollfd){plugin->listener, POLLIN, 0};
		fds[FD_KUBELET] = poll_for(plugin->kubelet.call);
		for (uint32_t i = 0; i < CONNECTIONS; i++)
			fds[FD_CONNECTIONS + i] = poll_for(plugin->connection[i]);
		if (poll(fds, FD_N, timeout_ms(wakeup_ns, td_time_now_ns())) < 0 && errno != EINTR)
			return -errno;
		if (fds[FD_SIGNAL].revents)
			return 0;
		if (fds[FD_LISTENER].revents)
			take_connection(plugin);
		if (fds[FD_FOLDER].revents) {
			int r = read_folder(plugin);

			if (r)
				return r;
		}
	}
}

/* Splits the path of the daemon's socket, because its folder is mounted into containers. */
static int read_socket(struct plugin *plugin, struct td_err *err)
{
	int r = td_socket_path_typed(plugin->socket, sizeof(plugin->socket), err);
	char *slash;

	if (r)
		return r;
	strcpy(plugin->socket_dir, plugin->socket);
	slash = strrchr(plugin->socket_dir, '/');
	if (!slash || slash == plugin->socket_dir)
		return td_err_set(err, -EINVAL,
			"\"%.200s\": expected a socket in a folder of its own, which containers "
			"get",
			plugin->socket);
	*slash = 0;
	plugin->service.socket_dir = plugin->socket_dir;
	plugin->service.socket_name = strrchr(plugin->socket, '/') + 1;
	return 0;
}

#ifdef TD_HAVE_PLACED
static uint32_t placed(void *arg, uint64_t slices, uint32_t *ret_gpus)
{
	return td_kube_placed_next(arg, slices, ret_gpus);
}

/* tandem-kube-sched writes into pods on which GPUs they are to run. */
static int follow_scheduler(struct plugin *plugin, struct td_err *err)
{
	static struct td_kube_found found;
	const struct options *options = &plugin->options;
	const struct td_kube_account given = {.server = options->server,
		.token_file = options->token_file,
		.ca_file = options->ca_file,
		.timeout_ms = PATIENCE_MS};
	struct td_kube_api *api;
	int r = options->node ? td_kube_account_find(&given, &found, err) : 0;

	if (r || !options->node)
		return r;
	r = td_kube_api_open(&found.account, &api, err);
	if (r)
		return r;
	plugin->service.placed_arg = td_kube_placed_new(api, options->node, options->resource);
	plugin->service.placed = placed;
	return plugin->service.placed_arg ? 0 : td_err_set(err, -ENOMEM, "no memory");
}
#else
static int follow_scheduler(struct plugin *plugin, struct td_err *err)
{
	if (!plugin->options.node)
		return 0;
	return td_err_set(err, -EOPNOTSUPP,
		"--node-name: this build cannot ask an API server (it needs libcurl and jansson)");
}
#endif

static int prepare(struct plugin *plugin, struct td_err *err)
{
	const struct options *options = &plugin->options;
	int r = read_socket(plugin, err);

	r = r ? r : follow_scheduler(plugin, err);
	if (r)
		return r;
	plugin->service.library_dir = options->library;
	plugin->service.cdi = options->cdi;
	plugin->service.gpus = &plugin->gpus;
	plugin->address.sun_family = AF_UNIX;
	if ((size_t)snprintf(plugin->address.sun_path, sizeof(plugin->address.sun_path),
		    "%s/" ENDPOINT,
		    options->dir) >= sizeof(plugin->address.sun_path) - strlen(NOT_YET) ||
		td_kubelet_init(&plugin->kubelet, options->dir, ENDPOINT, options->resource))
		return td_err_set(err, -ENAMETOOLONG,
			"--kubelet-dir: \"%.200s\" is too long for the address of a socket",
			options->dir);
	plugin->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (plugin->inotify < 0 ||
		inotify_add_watch(plugin->inotify, options->dir,
			IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_ONLYDIR) < 0)
		return td_err_set(
			err, -errno, "--kubelet-dir: %.200s: %s", options->dir, strerror(errno));
	return 0;
}

static int run(const struct options *options)
{
	static struct plugin plugin;
	struct td_err err = {0};
	char text[512];
	int r;

	plugin.options = *options;
	plugin.listener = plugin.inotify = -1;
	plugin.signals = td_end_signals();
	if (plugin.signals < 0)
		return fail(strerror(errno));
	if (prepare(&plugin, &err))
		return fail(err.msg);
	r = begin(&plugin);
	if (r) {
		snprintf(text, sizeof(text), "%.200s: %s", plugin.address.sun_path, strerror(-r));
		return fail(text);
	}
	r = serve(&plugin);
	td_kubelet_deinit(&plugin.kubelet);
	close_all(&plugin);
	(void)unlink(plugin.address.sun_path);
	close(plugin.inotify);
	close(plugin.signals);
	if (!r)
		return 0;
	snprintf(text, sizeof(text), "%.200s: %s", options->dir, strerror(-r));
	return fail(text);
}

/* -- options -- */

static int read_period(const char *text, uint64_t *ret_ns, struct td_err *err)
{
	if (td_parse_duration(text, ret_ns, err))
		return err->code;
	if (*ret_ns < 10 * TD_NS_PER_MS || *ret_ns > 3600 * TD_NS_PER_S)
		return td_err_expected(err, -ERANGE, text, "10ms to 1h");
	return 0;
}

/* Checks for a domain, a slash and a name, which Kubernetes demands of an extended resource. */
static int check_name(const char *option, const char *text, struct td_err *err)
{
	const char *slash = strchr(text, '/');
	size_t len = strlen(text);

	if (slash && slash != text && slash[1] && !strchr(slash + 1, '/') && len < 128 &&
		strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789.-/") == len)
		return 0;
	return td_err_set(err, -EINVAL,
		"%s: \"%.64s\": expected a domain and a name, such as tandem.dev/gpu", option,
		text);
}

static int check_options(const struct options *options, struct td_err *err)
{
	struct stat st;
	char path[512];

	if (!options->library)
		return td_err_set(err, -EINVAL,
			"--library is missing: expected the folder of "
			"libtandem.so, see --help");
	snprintf(path, sizeof(path), "%.400s/libtandem.so", options->library);
	if (*options->library != '/' || stat(path, &st))
		return td_err_set(err, -EINVAL,
			"--library: \"%.200s\": expected an absolute path with libtandem.so in it",
			options->library);
	if (options->cdi && check_name("--cdi", options->cdi, err))
		return err->code;
	return check_name("--resource", options->resource, err);
}

static int take_option(void *arg, int letter, const char *text, struct td_err *err)
{
	struct options *o = arg;

	switch (letter) {
	case 'l': o->library = text; return 0;
	case 'k': o->dir = text; return 0;
	case 'r': o->resource = text; return 0;
	case 'c': o->cdi = text; return 0;
	case 'n': o->node = *text ? text : NULL; return 0;
	case 's': o->server = text; return 0;
	case 't': o->token_file = text; return 0;
	case 'a': o->ca_file = text; return 0;
	case 'p': return read_period(text, &o->period_ns, err);
	default: return -EINVAL;
	}
}

static const struct td_command command = {
	.name = PROGRAM,
	.usage = "usage: " PROGRAM " --library DIR [OPTION]...\n"
		 "\n"
		 "Offers the GPUs of this node to Kubernetes in hundredths, as tandem.dev/gpu: "
		 "see\n" PROGRAM "(8).\n",
	.notes = "The daemon is that of TANDEM_SOCKET, or of /run/tandem/socket.\n",
	.options = rows,
	.count = sizeof(rows) / sizeof(*rows),
	.take = take_option,
};

int main(int argc, char **argv)
{
	struct options options = {
		.dir = "/var/lib/kubelet/device-plugins",
		.resource = "tandem.dev/gpu",
		.period_ns = 5 * TD_NS_PER_S,
	};
	int answered = td_command_answer(&command, argc, argv);
	struct td_err err = {0};

	if (answered >= 0)
		return answered;
	if (td_command_parse(&command, argc, argv, &options, &err) || check_options(&options, &err))
		return fail(err.msg);
	return run(&options);
}
