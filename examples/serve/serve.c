/*
 * An inference service in miniature: HTTP, one batching thread, and a small network on the GPU.
 *
 *   POST or GET /infer?x=NUMBER   {"output": ..., "batch": ...}
 *   GET /healthz                  200
 *   GET /metrics                  Prometheus text
 *
 * It tells tandem of its requests (tandem/tandem.h), unless it is --plain; without tandem it runs,
 * too. It listens when its first batch has run. At SIGTERM it takes no new connections, answers
 * what it has, and exits: so a second instance on the same port can take its place (tandem run
 * --shadow).
 */
#include <errno.h>
#include <getopt.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "batcher.h"
#include "handover.h"
#include "include/tandem/tandem.h"

#define EXIT_USAGE 2
#define BODY_MAX   65536
#define PAGE_MAX   8192
#define NAME_MAX_  63

struct serve {
	struct batcher batcher;
	struct MHD_Daemon *http;
	const char *name;
	uint64_t port, objective_ns, linger_ns, width, layers, batch_max, kernel_ns, request_ns,
		sms, bandwidth, activations;
	bool plain;
};

static struct serve serve = {.name = "serve", .width = 64, .layers = 4, .batch_max = 16, .sms = 1};
static _Atomic bool listens;   /* serve.http is there */
static _Atomic bool ends;      /* SIGTERM has come */
static _Atomic uint32_t asked; /* requests that have no whole answer yet */

/* One HTTP exchange. */
struct exchange {
	struct request request;
	struct MHD_Connection *connection;
	size_t body_bytes;
	bool asked, refused;
	_Atomic bool answered;
};

static enum MHD_Result reply(
	struct MHD_Connection *connection, unsigned status, const char *type, const char *text)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result r = MHD_NO;

	if (!response)
		return MHD_NO;
	/* The next request of this client goes to the instance that takes over. */
	if (atomic_load(&ends))
		(void)MHD_add_response_header(response, "Connection", "close");
	if (MHD_add_response_header(response, "Content-Type", type) == MHD_YES)
		r = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return r;
}

/* -- /metrics -- */

static const double bounds_s[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5};

static uint64_t count_up_to(const uint64_t *counts, double seconds)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < TD_HISTOGRAM_N; i++)
		if ((double)td_histogram_end_ns(i) <= seconds * 1e9)
			sum += counts[i];
	return sum;
}

static void write_metrics(struct batcher *b, FILE *out)
{
	pthread_mutex_lock(&b->lock);
	fprintf(out,
		"# HELP serve_requests_total Requests that were taken.\n"
		"# TYPE serve_requests_total counter\nserve_requests_total %llu\n"
		"# HELP serve_refused_total Requests that were refused, because too many waited.\n"
		"# TYPE serve_refused_total counter\nserve_refused_total %llu\n"
		"# HELP serve_batches_total Batches that were run.\n"
		"# TYPE serve_batches_total counter\nserve_batches_total %llu\n"
		"# HELP serve_batch_size Requests of the last batch.\n"
		"# TYPE serve_batch_size gauge\nserve_batch_size %u\n"
		"# HELP serve_queue_size Requests that wait.\n"
		"# TYPE serve_queue_size gauge\nserve_queue_size %u\n"
		"# HELP serve_request_duration_seconds From arrival to answer.\n"
		"# TYPE serve_request_duration_seconds histogram\n",
		(unsigned long long)b->arrived, (unsigned long long)b->refused,
		(unsigned long long)b->batches, b->last_batch, b->queued);
	for (unsigned i = 0; i < sizeof(bounds_s) / sizeof(*bounds_s); i++)
		fprintf(out, "serve_request_duration_seconds_bucket{le=\"%g\"} %llu\n", bounds_s[i],
			(unsigned long long)count_up_to(b->latency, bounds_s[i]));
	fprintf(out,
		"serve_request_duration_seconds_bucket{le=\"+Inf\"} %llu\n"
		"serve_request_duration_seconds_sum %.6f\n"
		"serve_request_duration_seconds_count %llu\n",
		(unsigned long long)b->answered, (double)b->sum_ns / 1e9,
		(unsigned long long)b->answered);
	pthread_mutex_unlock(&b->lock);
}

static enum MHD_Result reply_metrics(struct MHD_Connection *connection)
{
	char page[PAGE_MAX] = "";
	FILE *out = fmemopen(page, sizeof(page), "w");

	if (!out)
		return MHD_NO;
	write_metrics(&serve.batcher, out);
	fclose(out);
	return reply(connection, MHD_HTTP_OK, "text/plain; version=0.0.4", page);
}

/* -- /infer -- */

/* On the batching thread: the connection's own thread goes on with it. */
static void done(struct request *request)
{
	struct exchange *exchange = request->arg;

	atomic_store(&exchange->answered, true);
	MHD_resume_connection(exchange->connection);
}

static bool read_input(struct MHD_Connection *connection, float *ret)
{
	const char *text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "x");
	char *end;

	*ret = 1;
	if (!text)
		return true;
	*ret = strtof(text, &end);
	return *text && !*end && *ret >= 0 && *ret <= 1e6f;
}

static enum MHD_Result infer(struct MHD_Connection *connection, struct exchange *exchange)
{
	char text[128];

	if (atomic_load(&exchange->answered)) {
		snprintf(text, sizeof(text), "{\"output\": %.6g, \"batch\": %u}\n",
			(double)exchange->request.output, exchange->request.batch);
		return reply(connection, MHD_HTTP_OK, "application/json", text);
	}
	if (exchange->refused)
		return reply(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "text/plain",
			"too many requests wait\n");
	if (exchange->asked)
		return MHD_YES;
	exchange->asked = true;
	exchange->connection = connection;
	exchange->request = (struct request){.done = done, .arg = exchange};
	if (!read_input(connection, &exchange->request.input))
		return reply(connection, MHD_HTTP_BAD_REQUEST, "text/plain",
			"x is not a number from 0 to 1000000\n");
	MHD_suspend_connection(connection);
	if (!batcher_add(&serve.batcher, &exchange->request)) {
		exchange->refused = true;
		MHD_resume_connection(connection);
	}
	return MHD_YES;
}

/* -- HTTP -- */

static enum MHD_Result answer(void *arg, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *data, size_t *data_bytes, void **state)
{
	struct exchange *exchange = *state;

	(void)arg;
	(void)method;
	(void)version;
	(void)data;
	if (!exchange) {
		*state = calloc(1, sizeof(*exchange));
		atomic_fetch_add(&asked, *state ? 1 : 0);
		return *state ? MHD_YES : MHD_NO;
	}
	if (*data_bytes) {
		exchange->body_bytes += *data_bytes;
		*data_bytes = 0;
		return exchange->body_bytes <= BODY_MAX ? MHD_YES : MHD_NO;
	}
	if (!strcmp(url, "/infer"))
		return infer(connection, exchange);
	if (!strcmp(url, "/metrics"))
		return reply_metrics(connection);
	if (!strcmp(url, "/healthz"))
		return reply(connection, MHD_HTTP_OK, "text/plain", "ready\n");
	return reply(connection, MHD_HTTP_NOT_FOUND, "text/plain",
		"expected /infer, /healthz or /metrics\n");
}

static void completed(void *arg, struct MHD_Connection *connection, void **state,
	enum MHD_RequestTerminationCode how)
{
	(void)arg;
	(void)connection;
	(void)how;
	atomic_fetch_sub(&asked, *state ? 1 : 0);
	free(*state);
	*state = NULL;
}

/* -- the program -- */

static const char usage[] =
	"usage: serve [--port N] [--name NAME] [--objective TIME] [--batch N] [--linger TIME]\n"
	"             [--width N] [--layers N] [--kernel TIME] [--request TIME] [--sms N]\n"
	"             [--bandwidth RATE] [--activations SIZE] [--plain]\n"
	"Answers http://127.0.0.1:PORT/infer?x=NUMBER with a small network on the GPU.\n"
	"  --port N          0 (the default): any, which is printed\n"
	"  --objective TIME  for the 99th percentile of its latency, told to tandem\n"
	"  --batch N         the largest batch (16); --linger TIME: how long a batch waits for "
	"more (0)\n"
	"  --width N, --layers N  of the network (64, 4)\n"
	"  --kernel TIME     each batch takes so much longer (0) on --sms N SMs (1), and each of "
	"its\n"
	"                    requests --request TIME (0) more; with --bandwidth RATE of memory "
	"(0)\n"
	"  --activations SIZE  memory that each request of a batch takes (0); that of the largest "
	"batch\n"
	"                    so far is kept\n"
	"  --plain           tell tandem nothing, as a service that does not know it\n";

enum {
	OPTION_PORT = 256,
	OPTION_NAME,
	OPTION_OBJECTIVE,
	OPTION_BATCH,
	OPTION_LINGER,
	OPTION_WIDTH,
	OPTION_LAYERS,
	OPTION_KERNEL,
	OPTION_SMS,
	OPTION_REQUEST,
	OPTION_BANDWIDTH,
	OPTION_ACTIVATIONS,
	OPTION_PLAIN
};

static const struct option options[] = {
	{"port", required_argument, NULL, OPTION_PORT},
	{"name", required_argument, NULL, OPTION_NAME},
	{"objective", required_argument, NULL, OPTION_OBJECTIVE},
	{"batch", required_argument, NULL, OPTION_BATCH},
	{"linger", required_argument, NULL, OPTION_LINGER},
	{"width", required_argument, NULL, OPTION_WIDTH},
	{"layers", required_argument, NULL, OPTION_LAYERS},
	{"kernel", required_argument, NULL, OPTION_KERNEL},
	{"sms", required_argument, NULL, OPTION_SMS},
	{"request", required_argument, NULL, OPTION_REQUEST},
	{"bandwidth", required_argument, NULL, OPTION_BANDWIDTH},
	{"activations", required_argument, NULL, OPTION_ACTIVATIONS},
	{"plain", no_argument, NULL, OPTION_PLAIN},
	{0},
};

static int take_option(int c, struct td_err *err)
{
	switch (c) {
	case OPTION_PORT: return td_parse_u64(optarg, 0, 65535, &serve.port, err);
	case OPTION_OBJECTIVE: return td_parse_duration(optarg, &serve.objective_ns, err);
	case OPTION_BATCH: return td_parse_u64(optarg, 1, NETWORK_BATCH_MAX, &serve.batch_max, err);
	case OPTION_LINGER: return td_parse_duration(optarg, &serve.linger_ns, err);
	case OPTION_WIDTH: return td_parse_u64(optarg, 1, NETWORK_WIDTH_MAX, &serve.width, err);
	case OPTION_LAYERS: return td_parse_u64(optarg, 1, 64, &serve.layers, err);
	case OPTION_KERNEL: return td_parse_duration(optarg, &serve.kernel_ns, err);
	case OPTION_REQUEST: return td_parse_duration(optarg, &serve.request_ns, err);
	case OPTION_BANDWIDTH: return td_parse_size(optarg, 0, &serve.bandwidth, err);
	case OPTION_ACTIVATIONS: return td_parse_size(optarg, 0, &serve.activations, err);
	case OPTION_SMS: return td_parse_u64(optarg, 1, 1024, &serve.sms, err);
	case OPTION_PLAIN: serve.plain = true; return 0;
	default: break;
	}
	if (!*optarg || strlen(optarg) > NAME_MAX_)
		return td_err_set(err, -EINVAL,
			"invalid value \"%.64s\" for --name: expected 1 to %d bytes", optarg,
			NAME_MAX_);
	serve.name = optarg;
	return 0;
}

static int parse(int argc, char **argv, struct td_err *err)
{
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (c == ':' || c == '?')
			return td_refuse_option(c, argv, options, "serve --help", err);
		if (td_check_optarg(argv, err) || take_option(c, err))
			return -EINVAL;
	}
	if (optind < argc)
		return td_err_set(
			err, -EINVAL, "\"%.64s\" is not an option: see serve --help", argv[optind]);
	return 0;
}

static void listen_here(void)
{
	int fd = handover_listen((uint16_t)serve.port);

	if (fd < 0) {
		fprintf(stderr, "serve: cannot listen on 127.0.0.1:%llu: %s\n",
			(unsigned long long)serve.port, strerror(-fd));
		exit(EXIT_FAILURE);
	}
	serve.http = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0,
		NULL, NULL, answer, NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED,
		completed, NULL, MHD_OPTION_END);
	if (serve.http)
		return;
	fprintf(stderr, "serve: HTTP cannot be started: %s\n", strerror(errno));
	exit(EXIT_FAILURE);
}

/* On the batching thread, after the first batch. */
static void ready(void)
{
	const union MHD_DaemonInfo *info;

	listen_here();
	atomic_store(&listens, true);
	info = MHD_get_daemon_info(serve.http, MHD_DAEMON_INFO_BIND_PORT);
	printf("http://127.0.0.1:%u/infer\n", info ? info->port : 0);
	fflush(stdout);
	tandem_ready();
}

/* Hands over to the instance that takes this one's place, if there is one, and exits. */
static void end_service(void)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(serve.http, MHD_DAEMON_INFO_LISTEN_FD);
	int fd;

	handover_turn_away(info ? info->listen_fd : -1);
	fd = MHD_quiesce_daemon(serve.http);
	if (fd >= 0)
		close(fd);
	while (atomic_load(&asked))
		td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS);
	exit(0);
}

static sem_t told_to_end;

/* A handler, and not sigwait(): tandem sees by it that the program ends its work itself. */
static void note_end(int signal)
{
	(void)signal;
	sem_post(&told_to_end);
}

static void *wait_for_end(void *arg)
{
	(void)arg;
	while (sem_wait(&told_to_end))
		;
	atomic_store(&ends, true);
	if (!atomic_load(&listens))
		exit(0);
	end_service();
	return NULL;
}

static void heed_the_end(void)
{
	const struct sigaction action = {.sa_handler = note_end, .sa_flags = SA_RESTART};
	pthread_t thread;

	sem_init(&told_to_end, 0, 0);
	if (!pthread_create(&thread, NULL, wait_for_end, NULL))
		sigaction(SIGTERM, &action, NULL);
}

int main(int argc, char **argv)
{
	struct td_err err;

	if (argc == 2 && td_asks_help(argv[1])) {
		fputs(usage, stdout);
		return td_output_end("serve", 0, EXIT_USAGE);
	}
	if (parse(argc, argv, &err)) {
		fprintf(stderr, "serve: %s\n", err.msg);
		return EXIT_USAGE;
	}
	batcher_init(&serve.batcher, serve.linger_ns);
	serve.batcher.kernel_ns = serve.kernel_ns;
	serve.batcher.request_ns = serve.request_ns;
	serve.batcher.bandwidth = serve.bandwidth;
	serve.batcher.activations = serve.activations;
	serve.batcher.sms = (unsigned)serve.sms;
	heed_the_end();
	/* Without this call tandem ignores the others. */
	if (!serve.plain &&
		tandem_service(serve.name, serve.objective_ns, (uint32_t)serve.batch_max))
		fprintf(stderr, "serve: tandem does not count the requests: memory is short\n");
	batcher_run(&serve.batcher, (uint32_t)serve.width, (uint32_t)serve.layers,
		(uint32_t)serve.batch_max, ready);
	return EXIT_FAILURE;
}
