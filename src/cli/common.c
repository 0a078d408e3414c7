/* Talks to the daemon, and finds the files of this installation; see cli.h. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "cli/cli.h"
#include "proto/socket.h"

/* How often a request is sent again if the daemon ends meanwhile. */
#define ASK_TIMES 5
/*
 * The daemon never blocks, so it answers at once. If it has not answered after this time, it is
 * stopped or gets no CPU time.
 */
#define ANSWER_NS (2 * TD_NS_PER_S)
/*
 * The time for answers that wait for the driver: the daemon does so before it lists GPUs, 12 s the
 * first time (daemon/server/requests/tools.c), and when it ends.
 */
#define DRIVER_NS (15 * TD_NS_PER_S)
#define FOR_EVER  0

int td_cli_socket(char *ret, size_t len)
{
	struct td_err err = {0};

	return td_socket_path_typed(ret, len, &err) ? td_cli_fail("%s", err.msg) : 0;
}

int td_cli_connect(const char *path)
{
	return td_socket_connect(path, ANSWER_NS);
}

/* Returns the pid of the process that listens on the socket; 0 if unknown. */
static pid_t listener_of(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return fd >= 0 && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) ? peer.pid : 0;
}

bool td_cli_is_mute(int r)
{
	return r == -EAGAIN || r == -EPROTO || r == -EBADMSG;
}

const char *td_cli_why_mute(char *buf, size_t len, const char *path, int fd, int r)
{
	int pid = (int)listener_of(fd), seconds = (int)(ANSWER_NS / TD_NS_PER_S);
	char who[32] = "";

	if (pid)
		snprintf(who, sizeof(who), " (pid %d)", pid);
	if (r == -EAGAIN && pid)
		snprintf(buf, len,
			"no answer in %d s from the daemon at %s%s, which is stopped or "
			"overloaded: `kill -CONT %d` continues it, `kill -KILL %d` ends it and "
			"leaves programs running",
			seconds, path, who, pid, pid);
	else if (r == -EAGAIN)
		snprintf(buf, len,
			"no answer in %d s from the daemon at %s, which is stopped or overloaded: "
			"continue it (kill -CONT), or end it (kill -KILL), which leaves programs "
			"running; its pid is in %s.lock",
			seconds, path, path);
	else if (td_cli_is_mute(r))
		snprintf(buf, len,
			"what answers at %s%s is no tandemd (%s): end it, or set TANDEM_SOCKET to "
			"the socket of one",
			path, who, strerror(-r));
	else
		snprintf(buf, len, "the daemon at %s ends every connection (%s): see %s.log", path,
			strerror(-r), path);
	return buf;
}

/*
 * Called when no answer has come in time. An action may take long, so a PING is sent once: a daemon
 * that is working on it answers that.
 */
static int keep_waiting(int fd, const struct td_msg *request, bool *was_asked)
{
	static const struct td_msg ping = {.type = TD_MSG_TYPE_ping};

	if (request->type != TD_MSG_TYPE_act || *was_asked)
		return -EAGAIN;
	*was_asked = true;
	return td_socket_send(fd, &ping, NULL, 0);
}

/*
 * Sends the request and reads the answer. Returns 0 after END; TD_EXIT_USAGE after an ERROR, which
 * was printed; -EAGAIN if no known message came in time; another -errno if the daemon was lost or
 * the peer is not a daemon.
 */
static int exchange(int fd, const struct td_msg *request, uint64_t patience_ns,
	void (*row)(const struct td_msg *msg, void *arg), void *arg)
{
	int r = td_socket_set_patience(fd, patience_ns);
	uint64_t heard_ns = td_time_now_ns();
	bool was_asked = false;
	struct td_msg msg;

	r = r ? r : td_socket_send(fd, request, NULL, 0);
	while (!r) {
		r = td_socket_recv(fd, &msg, NULL, 0);
		if (r == -EAGAIN) {
			r = keep_waiting(fd, request, &was_asked);
			continue;
		}
		was_asked = false;
		if (r == TD_PROTO_UNKNOWN) {
			r = patience_ns && td_time_now_ns() >= heard_ns + patience_ns ? -EAGAIN : 0;
			continue;
		}
		if (r || msg.type == TD_MSG_TYPE_end)
			break;
		/*
		 * Names of jobs and devices come from other users and may contain control
		 * characters.
		 */
		td_proto_each_str(&msg, td_printable);
		heard_ns = td_time_now_ns();
		if (msg.type == TD_MSG_TYPE_error)
			return td_cli_fail("%s%s", msg.error.text, msg.error.rest);
		if (row)
			row(&msg, arg);
		/* The output cannot be written; main() reports it. */
		if (ferror(stdout))
			return 0;
	}
	return r;
}

int td_cli_probe(int fd)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_get};

	strcpy(msg.get.key, "policy");
	return exchange(fd, &msg, ANSWER_NS, NULL, NULL);
}

static uint64_t patience_for(const struct td_msg *request)
{
	if (request->type == TD_MSG_TYPE_events && request->events.follow)
		return FOR_EVER;
	if (request->type == TD_MSG_TYPE_list_gpus || request->type == TD_MSG_TYPE_list_policies)
		return DRIVER_NS;
	return ANSWER_NS;
}

/*
 * Sends a harmless request first, which is answered at once, and then the real one by exchange().
 * So a slow answer to the real request is not taken for silence. And a stopped daemon does not
 * carry out, when it continues, a change that its user was told had failed.
 */
static int ask_on(int fd, const struct td_msg *request,
	void (*row)(const struct td_msg *msg, void *arg), void *arg)
{
	int r = td_cli_probe(fd);

	return r ? r : exchange(fd, request, patience_for(request), row, arg);
}

/* Prints why there was no answer, and closes fd. fd is the result of td_cli_connect(). */
static int fail(const char *path, int fd, int r)
{
	char text[TD_CLI_WHY];

	if (td_cli_is_mute(r))
		td_cli_fail("%s", td_cli_why_mute(text, sizeof(text), path, fd, r));
	else if (fd < 0)
		td_cli_fail("no daemon at %s (%s): `tandem run` starts one", path, strerror(-r));
	else
		td_cli_fail("the daemon did not answer: %s", strerror(-r));
	if (fd >= 0)
		close(fd);
	return TD_EXIT_USAGE;
}

int td_cli_ask(
	const struct td_msg *request, void (*row)(const struct td_msg *msg, void *arg), void *arg)
{
	char path[256];
	int fd, r;

	if (td_cli_socket(path, sizeof(path)))
		return TD_EXIT_USAGE;
	fd = td_cli_connect(path);
	r = fd < 0 ? fd : ask_on(fd, request, row, arg);
	if (r < 0)
		return fail(path, fd, r);
	close(fd);
	return r;
}

int td_cli_ask_to_end(const struct td_msg *request)
{
	char path[256];
	int fd, r;

	if (td_cli_socket(path, sizeof(path)))
		return TD_EXIT_USAGE;
	fd = td_cli_connect(path);
	r = fd < 0 ? fd : ask_on(fd, request, NULL, NULL);
	if (r < 0)
		return fail(path, fd, r);
	/* The contents of the daemon's last messages do not matter here. */
	if (!r)
		(void)td_socket_set_patience(fd, DRIVER_NS);
	for (struct td_msg msg; !r;) {
		r = td_socket_recv(fd, &msg, NULL, 0);
		r = r == TD_PROTO_UNKNOWN ? 0 : r;
	}
	close(fd);
	if (r == -EAGAIN)
		return td_cli_fail("the daemon at %s was told to stop and has not ended in %d s: "
				   "see %s.log",
			path, (int)(DRIVER_NS / TD_NS_PER_S), path);
	return r < 0 ? 0 : r;
}

int td_cli_say_no_daemon(const char *path, int fd, int r)
{
	char text[TD_CLI_WHY];

	td_cli_fail("%s; until a daemon answers, the program runs without one",
		td_cli_why_mute(text, sizeof(text), path, fd, r));
	if (fd >= 0)
		close(fd);
	return TD_CLI_NO_DAEMON;
}

int td_cli_ask_or_start(
	const struct td_msg *request, void (*row)(const struct td_msg *msg, void *arg), void *arg)
{
	char path[256];
	int r = 0, status;

	if (td_cli_socket(path, sizeof(path)))
		return TD_EXIT_USAGE;
	for (int attempt = 0; attempt < ASK_TIMES; attempt++) {
		int fd = td_cli_connect(path);

		r = fd < 0 ? fd : ask_on(fd, request, row, arg);
		if (td_cli_is_mute(r))
			return td_cli_say_no_daemon(path, fd, r);
		if (fd >= 0)
			close(fd);
		if (r >= 0)
			return r;
		status = td_cli_ensure_daemon();
		if (status)
			return status;
	}
	return td_cli_fail("the daemon did not answer: %s", strerror(-r));
}

int td_cli_json_option(int argc, char **argv, bool *ret_json)
{
	int count = 1; /* of the words that are in front: the verb and its options */

	*ret_json = false;
	for (int i = 1; i < argc; i++) {
		char *word = argv[i];

		if (word[0] != '-')
			continue;
		if (strcmp(word, "--json")) {
			td_cli_fail("\"%.64s\" is not an option of %s: expected --json: see tandem "
				    "%s --help",
				word, argv[0], argv[0]);
			return -1;
		}
		*ret_json = true;
		memmove(argv + count + 1, argv + count, (size_t)(i - count) * sizeof(*argv));
		argv[count++] = word;
	}
	return count;
}

int td_cli_list_options(int argc, char **argv, bool *ret_json)
{
	int at = td_cli_json_option(argc, argv, ret_json);

	if (at >= 0 && at < argc)
		return td_cli_fail(
			"\"%.64s\" is not expected: see tandem %s --help", argv[at], argv[0]);
	return at < 0 ? TD_EXIT_USAGE : 0;
}

char *td_cli_find(char *buf, size_t len, const char *env, const char *const *candidates)
{
	const char *given = getenv(env);

	if (given && *given)
		return snprintf(buf, len, "%s", given) < (int)len ? buf : NULL;
	return td_program_beside(buf, len, candidates);
}
