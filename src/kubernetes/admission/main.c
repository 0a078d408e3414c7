/*
 * tandem-admission: judges the pods of a Kubernetes cluster that ask for parts of GPUs, before they
 * are made.
 *
 *   kubectl --pod--> API server --AdmissionReview--> tandem-admission
 *                               <--allowed, patch---
 *
 * One thread and one loop. It knows nothing but the pod in question, so any number of them may
 * run. What it does to a pod is said in pod.h.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/err.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "kubernetes/admission/address.h"
#include "kubernetes/admission/server.h"

#define PROGRAM    "tandem-admission"
#define EXIT_USAGE 125

struct options {
	struct td_admission_options admission;
	const char *cert, *key, *listen;
	uint64_t reload_ns;
	bool quiet;
};

static const struct td_command_option rows[] = {
#define OPTION(name, letter, argument, help) {name, argument, help, letter},
#include "kubernetes/admission/options.def"
#undef OPTION
};

/* -- options -- */

/* Checks a text for the characters and the length that names have in Kubernetes. */
static int check_name(
	const char *text, const char *characters, const char *expected, struct td_err *err)
{
	size_t length = strlen(text);

	if (length && length < 128 && strspn(text, characters) == length)
		return 0;
	return td_err_expected(err, -EINVAL, text, expected);
}

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789.-"

static int take_option(void *arg, int letter, const char *text, struct td_err *err)
{
	struct options *o = arg;
	int r;

	switch (letter) {
	case 'C': o->cert = text; return 0;
	case 'K': o->key = text; return 0;
	case 'l': o->listen = text; return 0;
	case 's':
		o->admission.scheduler = text;
		return check_name(text, NAME_CHARACTERS, "a scheduler's name, such as tandem", err);
	case 'R':
		o->admission.resource = text;
		return check_name(text, NAME_CHARACTERS "/",
			"a domain and a name, such as tandem.dev/gpu", err);
	case 'r':
		r = td_parse_duration(text, &o->reload_ns, err);
		if (!r && (o->reload_ns < 10 * TD_NS_PER_MS || o->reload_ns > 3600 * TD_NS_PER_S))
			return td_err_expected(err, -ERANGE, text, "10ms to 1h");
		return r;
	default: o->quiet = true; return 0;
	}
}

static const struct td_command command = {
	.name = PROGRAM,
	.usage = "usage: " PROGRAM " --cert FILE --key FILE [OPTION]...\n"
		 "\n"
		 "Judges the pods of a Kubernetes cluster that ask for tandem.dev/gpu, and sets "
		 "their\n"
		 "scheduler and their settings: see " PROGRAM "(8).\n",
	.options = rows,
	.count = sizeof(rows) / sizeof(*rows),
	.take = take_option,
};

static int check(const struct options *o, struct td_err *err)
{
	if (!o->cert || !o->key)
		return td_err_set(err, -EINVAL,
			"%s is missing: the API server speaks to it by HTTPS alone, see --help",
			o->cert ? "--key" : "--cert");
	return 0;
}

/* -- the loop -- */

static void look_at_certificate(struct td_certificate *certificate, uint64_t now_ns)
{
	struct td_err err = {0};
	int r = td_certificate_turn(certificate, now_ns, &err);

	if (r > 0)
		td_log(TD_LOG_INFO, "cert=%s a new certificate is in use", certificate->cert_path);
	else if (r < 0)
		td_log(TD_LOG_WARN, "cert=%s not read, the one before stays: %s",
			certificate->cert_path, err.msg);
}

/* Serves until a signal comes. */
static void serve(struct td_server *server, int signals)
{
	struct pollfd fds[] = {{signals, POLLIN, 0}, {td_server_fd(server), POLLIN, 0}};

	do {
		uint64_t now_ns = td_time_now_ns(), wakeup_ns, left_ns, ms;

		look_at_certificate(server->certificate, now_ns);
		wakeup_ns =
			td_min_u64(td_server_turn(server, now_ns), server->certificate->next_ns);
		left_ns = td_sub_sat(wakeup_ns, td_time_now_ns());
		ms = left_ns / TD_NS_PER_MS + (left_ns % TD_NS_PER_MS ? 1 : 0);
		if (poll(fds, 2, (int)td_min_u64(ms, 60000)) < 0 && errno != EINTR)
			return;
	} while (!fds[0].revents);
}

static int run(const struct options *o, struct td_err *err)
{
	static struct td_certificate certificate;
	static struct td_server server;
	int signals = td_end_signals(), fd = -1, r;

	if (signals < 0)
		return td_err_set(err, -errno, "no signals: %s", strerror(errno));
	r = td_certificate_init(&certificate, o->cert, o->key, o->reload_ns, err);
	if (r)
		return r;
	r = td_address_listen(o->listen, &fd, err);
	if (!r) {
		server.options = o->admission;
		server.certificate = &certificate;
		server.quiet = o->quiet;
		td_log(TD_LOG_INFO, "port=%u serving", td_address_port(fd));
		r = td_server_init(&server, fd);
		if (r)
			td_err_set(err, r, "cannot serve: %s", strerror(-r));
	}
	if (!r) {
		serve(&server, signals);
		td_server_deinit(&server);
	}
	td_certificate_deinit(&certificate);
	close(signals);
	return r;
}

int main(int argc, char **argv)
{
	struct options options = {.admission = {.resource = "tandem.dev/gpu"},
		.listen = "8443",
		.reload_ns = 10 * TD_NS_PER_S};
	int answered = td_command_answer(&command, argc, argv);
	struct td_err err = {0};

	if (answered >= 0)
		return answered;
	if (td_command_parse(&command, argc, argv, &options, &err) || check(&options, &err))
		return td_command_fail(&command, err.msg, EXIT_USAGE);
	return run(&options, &err) ? td_command_fail(&command, err.msg, 1) : 0;
}
