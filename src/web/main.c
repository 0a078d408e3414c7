/*
 * tandem-web, which `tandem web` executes: serves a page that shows the GPUs and the jobs of this
 * node, to its user alone. It is a client of tandemd like `tandem top`, and sees what its user may
 * see.
 *
 * It has one thread and one loop, for the feed (feed.h), the verbs that run (verbs.h), and HTTP
 * (http.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "proto/socket.h"
#include "view/options.h"
#include "web/http.h"
#include "web/listen.h"

#define EXIT_USAGE 125

struct options {
	const char *listen, *token_file;
	uint64_t period_ns;
};

static int fail(const char *text)
{
	fprintf(stderr, "tandem web: %s\n", text);
	return EXIT_USAGE;
}

/* -- the token -- */

static int make_token(char *ret)
{
	unsigned char bytes[TD_TOKEN_TEXT / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -errno;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* Makes a token and a file with it, if the file does not exist yet. */
static int write_token(const char *path, char *ret, struct td_err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), r;

	if (fd < 0)
		return td_err_set(err, -errno, "--token-file: %.200s: %s", path, strerror(errno));
	r = make_token(ret);
	if (!r && dprintf(fd, "%s\n", ret) < 0)
		r = -errno;
	close(fd);
	return r ? td_err_set(err, r, "--token-file: %.200s: %s", path, strerror(-r)) : 0;
}

static int read_token(const char *path, char *ret, struct td_err *err)
{
	char text[TD_TOKEN_TEXT + 2] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	ssize_t n;

	if (fd < 0 && errno == ENOENT)
		return write_token(path, ret, err);
	if (fd < 0)
		return td_err_set(err, -errno, "--token-file: %.200s: %s", path, strerror(errno));
	n = fstat(fd, &st) ? -1 : read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	if (n < 0 || !S_ISREG(st.st_mode) || !td_token_is_valid(text))
		return td_err_set(err, -EINVAL,
			"--token-file: %.200s does not hold a token: expected 32 digits of 0-9 and "
			"a-f, or no file, which makes one",
			path);
	if (st.st_mode & 077)
		return td_err_set(err, -EPERM,
			"--token-file: others may read %.200s: expected mode 0600", path);
	strcpy(ret, text);
	return 0;
}

static int take_token(struct td_http *http, const char *file, struct td_err *err)
{
	char name[TD_TOKEN_TEXT];
	int r = file ? read_token(file, http->token, err) : make_token(http->token);

	r = r ? r : make_token(name);
	if (r)
		return err->code ? r : td_err_set(err, r, "no random numbers: %s", strerror(-r));
	snprintf(http->cookie, sizeof(http->cookie), "tandem_%.8s", name);
	return 0;
}

/* -- the loop -- */

enum {
	FD_SIGNAL,
	FD_HTTP,
	FD_FEED,
	FD_VERBS = FD_FEED + TD_FEED_FDS,
	FD_N = FD_VERBS + TD_VERB_RUNS
};

static int timeout_ms(uint64_t wakeup_ns, uint64_t now_ns)
{
	uint64_t ms;

	if (wakeup_ns == UINT64_MAX)
		return -1;
	ms = wakeup_ns > now_ns ? (wakeup_ns - now_ns + TD_NS_PER_MS - 1) / TD_NS_PER_MS : 0;
	return ms > 60000 ? 60000 : (int)ms;
}

/* Serves until SIGTERM or SIGINT. */
static int serve(struct td_http *http, int signals)
{
	struct pollfd fds[FD_N];

	for (;;) {
		uint64_t now_ns = td_time_now_ns(), wakeup_ns, by_verbs_ns, by_http_ns;
		bool is_new = td_feed_turn(http->feed, now_ns, &wakeup_ns);

		td_verb_turn(http->runs, now_ns, &by_verbs_ns);
		td_http_turn(http, is_new, now_ns, &by_http_ns);
		wakeup_ns = td_min_u64(wakeup_ns, td_min_u64(by_verbs_ns, by_http_ns));
		fds[FD_SIGNAL] = (struct pollfd){signals, POLLIN, 0};
		fds[FD_HTTP] = (struct pollfd){td_http_fd(http), POLLIN, 0};
		td_feed_fds(http->feed, fds + FD_FEED);
		td_verb_fds(http->runs, fds + FD_VERBS);
		if (poll(fds, FD_N, timeout_ms(wakeup_ns, td_time_now_ns())) < 0 && errno != EINTR)
			return fail(strerror(errno));
		if (fds[FD_SIGNAL].revents)
			return 0;
	}
}

static int run(const struct options *options, const char *socket_path)
{
	static struct td_http http;
	static struct td_feed feed;
	static struct td_verb_runs runs;
	struct td_err err = {0};
	struct td_place place;
	int r, signals = td_end_signals();

	if (signals < 0)
		return fail(strerror(errno));
	if (take_token(&http, options->token_file, &err) ||
		td_listen(options->listen, &place, &err))
		return fail(err.msg);
	if (gethostname(http.host, sizeof(http.host) - 1))
		strcpy(http.host, "this node");
	td_feed_init(&feed, socket_path, options->period_ns);
	http.feed = &feed;
	http.runs = &runs;
	r = td_http_init(&http, place.fd);
	if (r) {
		td_listen_end(&place);
		return fail(strerror(-r));
	}
	printf(place.is_path ? "listening at %s; the token is %s\n" : "http://%s/?token=%s\n",
		place.address, http.token);
	td_output_flush();
	r = serve(&http, signals);
	td_http_deinit(&http);
	td_verb_end_all(&runs);
	td_feed_deinit(&feed);
	td_listen_end(&place);
	close(signals);
	return r;
}

/* -- options -- */

static void usage(FILE *out)
{
	fputs("usage: tandem web [OPTION]...\n\n"
	      "Serves a page that shows the GPUs and the jobs that share them, to you alone: open\n"
	      "the address that is printed. It ends with Ctrl-C.\n\n"
	      "  -l, --listen ADDRESS   127.0.0.1:PORT or [::1]:PORT, or the path of a unix "
	      "socket\n"
	      "                         (default: 127.0.0.1 and a port that is free)\n"
	      "  -t, --token-file FILE  the token is in this file, which is made if there is "
	      "none;\n"
	      "                         without it each start has another token\n"
	      "  -d, --delay TIME       between two rounds, such as 500ms (default: 1s)\n\n"
	      "From another machine: ssh -L 8080:127.0.0.1:PORT NODE, then localhost:8080.\n"
	      "Prometheus reads /metrics with the token as a bearer token.\n",
		out);
}

static int read_period(const char *text, uint64_t *ret_ns, struct td_err *err)
{
	if (!td_parse_duration(text, ret_ns, NULL) && *ret_ns >= 100 * TD_NS_PER_MS &&
		*ret_ns <= 3600 * TD_NS_PER_S)
		return 0;
	return td_err_set(err, -ERANGE,
		"--delay: \"%.64s\" is not valid: expected a time from 100ms to 1h", text);
}

/* Returns 0 to go on, -1 if the program is done, or an exit status. */
static int read_options(struct options *ret, int argc, char **argv)
{
	static const struct option options[] = {
#define OPTION_web TD_OPTION
#include "view/options_of.h"
	};
	struct td_err err = {0};
	char text[256];
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":l:t:d:h", options, NULL)) != -1) {
		switch (c) {
		case 'l': ret->listen = optarg; break;
		case 't': ret->token_file = optarg; break;
		case 'd':
			if (read_period(optarg, &ret->period_ns, &err))
				return fail(err.msg);
			break;
		case 'h': usage(stdout); return -1;
		default:
			(void)td_refuse_option(c, argv, options, "tandem web --help", &err);
			return fail(err.msg);
		}
	}
	if (optind == argc)
		return 0;
	snprintf(text, sizeof(text), "\"%.64s\" is not expected: see tandem web --help",
		argv[optind]);
	return fail(text);
}

int main(int argc, char **argv)
{
	struct options options = {.listen = "127.0.0.1:0", .period_ns = TD_NS_PER_S};
	struct td_err err = {0};
	char path[256];
	int r = read_options(&options, argc, argv);

	if (!r)
		r = td_socket_path_typed(path, sizeof(path), &err) ? fail(err.msg)
								   : run(&options, path);
	return td_output_end("tandem", r < 0 ? 0 : r, EXIT_USAGE);
}
