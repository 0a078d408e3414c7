/*
 * An open-loop load generator for HTTP services. Requests are sent at the times of a schedule,
 * whatever becomes of earlier ones, and a latency counts from the scheduled time. Prints one JSON
 * object; --timeline writes a row of figures per second.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/histogram.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "profiler/service/client.h"
#include "schedule.h"

#define PPM         1000000u
#define EXIT_USAGE  2
#define RATE_MAX    1e6
#define SECONDS_MAX (7 * 86400)

struct second {
	uint64_t sent, ok, failed;
	uint64_t latency[TD_HISTOGRAM_N];
};

struct load {
	struct schedule schedule;
	struct client client;
	const char *url, *body, *trace, *column, *timeline_path, *requests_path;
	uint32_t connections;
	uint64_t timeout_ns, length_ns, warmup_ns, began_ns;
	/* Requests that were due after the warm-up. */
	uint64_t sent, ok, failed, late_ns, longest_ns;
	uint64_t latency[TD_HISTOGRAM_N];
	FILE *timeline, *requests;
	struct second second;
	uint64_t second_number;
};

enum {
	OPTION_URL = 256,
	OPTION_RATE,
	OPTION_SWING,
	OPTION_PERIOD,
	OPTION_EVEN,
	OPTION_TRACE,
	OPTION_COLUMN,
	OPTION_ONLY,
	OPTION_GAPS,
	OPTION_SPEED,
	OPTION_FOR,
	OPTION_WARMUP,
	OPTION_CONNECTIONS,
	OPTION_TIMEOUT,
	OPTION_BODY,
	OPTION_SEED,
	OPTION_TIMELINE,
	OPTION_REQUESTS
};

static const struct option options[] = {
	{"url", required_argument, NULL, OPTION_URL},
	{"rate", required_argument, NULL, OPTION_RATE},
	{"swing", required_argument, NULL, OPTION_SWING},
	{"period", required_argument, NULL, OPTION_PERIOD},
	{"even", no_argument, NULL, OPTION_EVEN},
	{"trace", required_argument, NULL, OPTION_TRACE},
	{"column", required_argument, NULL, OPTION_COLUMN},
	{"only", required_argument, NULL, OPTION_ONLY},
	{"gaps", no_argument, NULL, OPTION_GAPS},
	{"speed", required_argument, NULL, OPTION_SPEED},
	{"for", required_argument, NULL, OPTION_FOR},
	{"warmup", required_argument, NULL, OPTION_WARMUP},
	{"connections", required_argument, NULL, OPTION_CONNECTIONS},
	{"timeout", required_argument, NULL, OPTION_TIMEOUT},
	{"body", required_argument, NULL, OPTION_BODY},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"timeline", required_argument, NULL, OPTION_TIMELINE},
	{"requests", required_argument, NULL, OPTION_REQUESTS},
	{0},
};

static const char usage[] =
	"usage: load --url http://HOST:PORT/PATH --rate N [--for TIME] [OPTION]...\n"
	"       load --url URL --trace FILE.csv --column NAME [OPTION]...\n"
	"Sends requests by a schedule, whatever becomes of earlier ones (open loop).\n"
	"  --rate N           requests per second, on average; gaps are exponential (Poisson)\n"
	"  --swing PART       the rate is a sine around that, by 0 to 1 of it; --period TIME: its "
	"length\n"
	"  --even             equal gaps instead\n"
	"  --trace FILE       times of a CSV file with a header: seconds in --column NAME;\n"
	"                     --gaps: they are gaps; --only WORD: rows that begin with it;\n"
	"                     --speed N: played N times as fast\n"
	"  --for TIME         ends after it (10s); --warmup TIME: is not counted (0)\n"
	"  --connections N    requests in flight at most, others wait and their wait counts (256)\n"
	"  --timeout TIME     after which a request counts as failed (10s)\n"
	"  --body TEXT        is posted; --seed N (1); --timeline FILE: figures of each second, as "
	"CSV\n"
	"  --requests FILE    CSV: when each was due, by the monotonic clock, and its latency\n";

static int refuse(const char *text)
{
	fprintf(stderr, "load: %s\n", text);
	return EXIT_USAGE;
}

static int parse_number(
	const char *option, const char *text, double most, double *ret, struct td_err *err)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0) || value > most)
		return td_err_set(err, -EINVAL, "invalid value \"%.64s\" for %s: expected 0 to %g",
			text, option, most);
	*ret = value;
	return 0;
}

static int parse_connections(const char *text, uint32_t *ret, struct td_err *err)
{
	uint64_t value;
	int r = td_parse_u64(text, 1, CLIENT_CONNECTIONS_MAX, &value, err);

	if (!r)
		*ret = (uint32_t)value;
	return r;
}

static int take_option(struct load *load, int c, struct td_err *err)
{
	struct schedule *s = &load->schedule;
	uint64_t ns;

	switch (c) {
	case OPTION_URL: load->url = optarg; return 0;
	case OPTION_RATE: return parse_number("--rate", optarg, RATE_MAX, &s->rate_per_s, err);
	case OPTION_SWING: return parse_number("--swing", optarg, 1, &s->swing, err);
	case OPTION_PERIOD:
		if (td_parse_duration(optarg, &ns, err))
			return -EINVAL;
		s->period_s = (double)ns / 1e9;
		return 0;
	case OPTION_EVEN: s->kind = SCHEDULE_EVEN; return 0;
	case OPTION_TRACE: load->trace = optarg; return 0;
	case OPTION_COLUMN: load->column = optarg; return 0;
	case OPTION_ONLY: s->only = optarg; return 0;
	case OPTION_GAPS: s->has_gaps = 1; return 0;
	case OPTION_SPEED: return parse_number("--speed", optarg, RATE_MAX, &s->speed, err);
	case OPTION_FOR: return td_parse_duration(optarg, &load->length_ns, err);
	case OPTION_WARMUP: return td_parse_duration(optarg, &load->warmup_ns, err);
	case OPTION_CONNECTIONS: return parse_connections(optarg, &load->connections, err);
	case OPTION_TIMEOUT: return td_parse_duration(optarg, &load->timeout_ns, err);
	case OPTION_BODY: load->body = optarg; return 0;
	case OPTION_SEED: return td_parse_u64(optarg, 0, UINT64_MAX, &s->random, err);
	case OPTION_TIMELINE: load->timeline_path = optarg; return 0;
	case OPTION_REQUESTS: load->requests_path = optarg; return 0;
	default: return -EINVAL;
	}
}

static int check(struct load *load, struct td_err *err)
{
	if (!load->url)
		return td_err_set(err, -EINVAL, "--url is missing: expected http://HOST:PORT/PATH");
	if (!load->trace && load->schedule.rate_per_s <= 0)
		return td_err_set(err, -EINVAL, "--rate or --trace is missing: see load --help");
	if (load->trace && !load->column)
		return td_err_set(err, -EINVAL, "--trace needs --column: which one has the times?");
	if (load->schedule.speed <= 0)
		return td_err_set(err, -EINVAL, "--speed is 0: expected 2 for twice as fast");
	if (load->length_ns > SECONDS_MAX * TD_NS_PER_S)
		return td_err_set(err, -EINVAL, "--for is too long: expected a week at most");
	if (load->trace) {
		load->schedule.kind = SCHEDULE_FILE;
		return schedule_open(&load->schedule, load->trace, load->column, err);
	}
	return 0;
}

static int parse(struct load *load, int argc, char **argv, struct td_err *err)
{
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (c == ':' || c == '?')
			return td_refuse_option(c, argv, options, "load --help", err);
		if (td_check_optarg(argv, err) || take_option(load, c, err))
			return -EINVAL;
	}
	if (optind < argc)
		return td_err_set(
			err, -EINVAL, "\"%.64s\" is not an option: see load --help", argv[optind]);
	return check(load, err);
}

/* -- figures -- */

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void end_second(struct load *load)
{
	struct second *s = &load->second;

	if (load->timeline)
		fprintf(load->timeline, "%llu,%.1f,%llu,%llu,%llu,%.3f,%.3f\n",
			(unsigned long long)load->second_number,
			schedule_rate(&load->schedule, (double)load->second_number),
			(unsigned long long)s->sent, (unsigned long long)s->ok,
			(unsigned long long)s->failed,
			ms(td_histogram_quantile_ns(s->latency, PPM / 2)),
			ms(td_histogram_quantile_ns(s->latency, 990000)));
	memset(s, 0, sizeof(*s));
	load->second_number++;
}

static void catch_up(struct load *load, uint64_t now_ns)
{
	while (now_ns - load->began_ns >= (load->second_number + 1) * TD_NS_PER_S)
		end_second(load);
}

static void answered(void *arg, uint64_t due_ns, uint64_t now_ns, bool ok)
{
	struct load *load = arg;
	uint64_t latency_ns = now_ns > due_ns ? now_ns - due_ns : 0;

	catch_up(load, now_ns);
	if (ok)
		load->second.ok++;
	else
		load->second.failed++;
	if (ok)
		load->second.latency[td_histogram_bucket(latency_ns)]++;
	if (ok && load->requests)
		fprintf(load->requests, "%llu,%llu\n", (unsigned long long)due_ns,
			(unsigned long long)latency_ns);
	if (due_ns - load->began_ns < load->warmup_ns)
		return;
	if (!ok) {
		load->failed++;
		return;
	}
	load->ok++;
	load->latency[td_histogram_bucket(latency_ns)]++;
	if (latency_ns > load->longest_ns)
		load->longest_ns = latency_ns;
}

static void print(const struct load *load)
{
	static const struct {
		const char *name;
		uint32_t ppm;
	} quantiles[] = {
		{"p50_ms", PPM / 2}, {"p90_ms", 900000}, {"p99_ms", 990000}, {"p999_ms", 999000}};
	double seconds = (double)(load->length_ns - load->warmup_ns) / 1e9;

	printf("{\"sent\": %llu, \"ok\": %llu, \"failed\": %llu, \"answered_per_s\": %.2f",
		(unsigned long long)load->sent, (unsigned long long)load->ok,
		(unsigned long long)load->failed, seconds > 0 ? (double)load->ok / seconds : 0);
	for (unsigned i = 0; i < sizeof(quantiles) / sizeof(*quantiles); i++) {
		uint64_t ns = td_histogram_quantile_ns(load->latency, quantiles[i].ppm);

		/* A quantile is interpolated within its bucket, so it can pass the longest. */
		ns = ns < load->longest_ns ? ns : load->longest_ns;
		printf(", \"%s\": %.3f", quantiles[i].name, ms(ns));
	}
	printf(", \"max_ms\": %.3f, \"sent_late_ms\": %.3f}\n", ms(load->longest_ns),
		ms(load->late_ns));
}

/* -- the run -- */

static int run(struct load *load, struct td_err *err)
{
	uint64_t end_ns, now_ns;
	double at_s;
	int r;

	load->began_ns = td_time_now_ns();
	end_ns = load->began_ns + load->length_ns;
	for (;;) {
		uint64_t due_ns;

		r = schedule_next(&load->schedule, &at_s, err);
		if (r < 0)
			return r;
		due_ns = load->began_ns + (uint64_t)(at_s * 1e9);
		if (r || due_ns >= end_ns)
			break;
		client_wait(&load->client, due_ns);
		now_ns = td_time_now_ns();
		catch_up(load, now_ns);
		load->second.sent++;
		if (due_ns - load->began_ns >= load->warmup_ns) {
			load->sent++;
			if (now_ns - due_ns > load->late_ns)
				load->late_ns = now_ns - due_ns;
		}
		if (client_ask(&load->client, due_ns))
			return td_err_set(err, -ENOMEM, "no memory for requests that wait");
	}
	if (r)
		load->length_ns = td_time_now_ns() - load->began_ns;
	/* Answers to what was sent still count. */
	end_ns = td_time_now_ns() + load->timeout_ns;
	while ((load->client.in_flight || load->client.queued) && td_time_now_ns() < end_ns)
		client_wait(&load->client, td_time_now_ns() + 10 * TD_NS_PER_MS);
	load->failed += load->client.queued + load->client.in_flight;
	end_second(load);
	return 0;
}

/* NULL: there is none. False after complaining. */
static bool open_csv(FILE **ret, const char *path, const char *head)
{
	if (!path)
		return true;
	*ret = fopen(path, "we");
	if (*ret)
		return fputs(head, *ret) >= 0;
	fprintf(stderr, "load: %s: %s\n", path, strerror(errno));
	return false;
}

int main(int argc, char **argv)
{
	struct load load = {.schedule = {.random = 1, .speed = 1, .period_s = 60},
		.connections = 256,
		.timeout_ns = 10 * TD_NS_PER_S,
		.length_ns = 10 * TD_NS_PER_S};
	struct td_err err;

	if (argc == 2 && td_asks_help(argv[1])) {
		fputs(usage, stdout);
		return td_output_end("load", 0, EXIT_USAGE);
	}
	if (parse(&load, argc, argv, &err) || client_init(&load.client, load.url, load.body,
						      load.connections, load.timeout_ns, &err))
		return refuse(err.msg);
	load.client.answered = answered;
	load.client.arg = &load;
	if (!open_csv(&load.timeline, load.timeline_path,
		    "second,rate,sent,ok,failed,p50_ms,p99_ms\n") ||
		!open_csv(&load.requests, load.requests_path, "due_ns,latency_ns\n"))
		return EXIT_USAGE;
	if (run(&load, &err))
		return refuse(err.msg);
	print(&load);
	if (load.timeline && fclose(load.timeline))
		return refuse("the timeline could not be written");
	if (load.requests && fclose(load.requests))
		return refuse("the requests could not be written");
	client_deinit(&load.client);
	return td_output_end("load", load.failed ? 1 : 0, EXIT_USAGE);
}
