/*
 * tandem-agent: tells the cluster's state about this node, one on each node (agent.h). tandemd
 * stays a program of libc alone, and never speaks to the network.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/err.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/text.h"
#include "base/time.h"
#include "cluster/agent/agent.h"
#include "cluster/state/etcd/etcd_options.h"
#include "proto/socket.h"

#define PROGRAM    "tandem-agent"
#define EXIT_USAGE 125
#define PRINT_NS   (5 * TD_NS_PER_S) /* so long --print waits for the daemon */

static const struct td_command_option rows[] = {
#define OPTION(name, letter, argument, help) {name, argument, help, letter},
#include "cluster/agent/options.def"
#include "cluster/state/etcd/etcd_options.def"
#undef OPTION
};

struct options {
	struct td_agent_options agent;
	struct td_etcd_settings etcd;
	char node[256], socket[256];
	bool prints;
};

/* -- options -- */

static int take_name(const char *name, struct td_err *err)
{
	return td_agent_is_name(name) ? 0
				      : td_err_expected(err, -EINVAL, name,
						"the name of a node, of letters, digits and marks "
						"without / and quotes");
}

static int take_prefix(const char *prefix, struct td_err *err)
{
	size_t length = strlen(prefix);

	if (length < 2 || length > 128 || *prefix != '/' || prefix[length - 1] != '/')
		return td_err_expected(
			err, -EINVAL, prefix, "a key such as /tandem/v1/, from / to /");
	return 0;
}

static int take_time(
	const char *text, uint64_t least_s, uint64_t most_s, uint64_t *ret_ns, struct td_err *err)
{
	if (!td_parse_duration(text, ret_ns, NULL) && *ret_ns >= least_s * TD_NS_PER_S &&
		*ret_ns <= most_s * TD_NS_PER_S)
		return 0;
	return td_err_set(err, -ERANGE, "\"%.64s\" is not valid: expected a time from %u s to %u s",
		text, (unsigned)least_s, (unsigned)most_s);
}

static int take_option(void *arg, int letter, const char *text, struct td_err *err)
{
	struct options *options = arg;
	uint64_t lease_ns;
	int r;

	switch (letter) {
	case 'n': options->agent.node = text; return take_name(text, err);
	case 's':
		snprintf(options->socket, sizeof(options->socket), "%s", text);
		return td_socket_check("--socket", text, 0, err);
	case 'P': options->agent.prefix = text; return take_prefix(text, err);
	case 'a': options->agent.folder = text; return 0;
	case 'f': options->agent.profiles = text; return 0;
	case 'l':
		r = take_time(text, 2, 3600, &lease_ns, err);
		if (!r)
			options->agent.lease_s = (uint32_t)(lease_ns / TD_NS_PER_S);
		return r;
	case 'r': return take_time(text, 1, 3600, &options->agent.refresh_ns, err);
	case 'o': options->prints = true; return 0;
	default: return td_etcd_settings_take(&options->etcd, letter, text, err);
	}
}

static const struct td_command command = {
	.name = PROGRAM,
	.usage = "usage: " PROGRAM " --etcd URLS [OPTION]...\n"
		 "\n"
		 "Tells the state of a cluster in etcd about this node: see " PROGRAM "(8).\n",
	.options = rows,
	.count = sizeof(rows) / sizeof(*rows),
	.take = take_option,
};

static int complete(struct options *options, struct td_err *err)
{
	if (!options->agent.node) {
		if (gethostname(options->node, sizeof(options->node) - 1))
			return td_err_set(err, -errno, "the machine has no name: give --name");
		options->agent.node = options->node;
	}
	if (!*options->socket &&
		td_socket_path_typed(options->socket, sizeof(options->socket), err))
		return err->code;
	options->agent.socket = options->socket;
	if (!options->prints && !options->etcd.options.endpoints)
		return td_err_set(err, -EINVAL,
			"--etcd is missing: expected endpoints such as http://127.0.0.1:2379");
	return take_name(options->agent.node, err);
}

/* -- the loop -- */

static int timeout_ms(uint64_t wakeup_ns, uint64_t now_ns)
{
	uint64_t left_ns = td_sub_sat(wakeup_ns, now_ns);

	if (left_ns > 60 * TD_NS_PER_S)
		return 60000;
	return (int)((left_ns + TD_NS_PER_MS - 1) / TD_NS_PER_MS);
}

/* Says once which profile is of no use. */
static void log_profiles(const struct td_agent *agent)
{
	static char said[sizeof(agent->publish.trouble)];

	if (!strcmp(said, agent->publish.trouble))
		return;
	strcpy(said, agent->publish.trouble);
	if (*said)
		td_log(TD_LOG_WARN, "node=%s %s", agent->options.node, said);
}

/* Says once what is wrong, and once that it is over. */
static void log_trouble(const struct td_agent *agent, int *said)
{
	if (agent->trouble == *said)
		return;
	*said = agent->trouble;
	if (*said == TD_STATE_CONFLICT)
		td_log(TD_LOG_ERROR,
			"node=%s another agent has this name: it must end, or use --name",
			agent->options.node);
	else if (*said)
		td_log(TD_LOG_WARN, "node=%s state: %s (%s)", agent->options.node,
			td_state_text(*said), td_state_why(agent->state));
	else
		td_log(TD_LOG_INFO, "node=%s is known to the cluster", agent->options.node);
}

/* Serves until a signal comes. */
static int serve(struct td_agent *agent)
{
	int signals = td_end_signals(), said = -1, r;

	if (signals < 0)
		return td_command_fail(&command, strerror(errno), EXIT_USAGE);
	for (;;) {
		uint64_t wakeup_ns = td_agent_turn(agent, td_time_now_ns());
		struct pollfd fds[] = {{signals, POLLIN, 0}, {td_state_fd(agent->state), POLLIN, 0},
			{agent->rounds.fd, POLLIN, 0}};

		log_trouble(agent, &said);
		log_profiles(agent);
		r = poll(fds, 3, timeout_ms(wakeup_ns, td_time_now_ns()));
		if (fds[0].revents || (r < 0 && errno != EINTR))
			break;
	}
	close(signals);
	return 0;
}

static int run(const struct options *options)
{
	static struct td_agent agent;
	struct td_state *state;
	struct td_err err;
	int r = td_etcd_open(&options->etcd.options, &state, &err);

	if (r)
		return td_command_fail(&command, err.msg, EXIT_USAGE);
	r = td_agent_init(&agent, &options->agent, state);
	if (r)
		fprintf(stderr, "tandem-agent: --assign: %s: %s\n", options->agent.folder,
			strerror(-r));
	r = r ? EXIT_USAGE : serve(&agent);
	td_agent_deinit(&agent);
	td_state_free(state);
	return r;
}

/* -- one record -- */

static int print_record(const struct options *options)
{
	static struct td_record record;
	struct td_rounds rounds;
	struct td_loads loads = {0};
	struct td_text text = {0};
	uint32_t load_ppm[TD_RECORD_GPUS];
	uint64_t end_ns = td_time_now_ns() + PRINT_NS, wakeup_ns, now_ns;
	bool is_there = false;

	td_rounds_init(&rounds, options->socket);
	while ((now_ns = td_time_now_ns()) < end_ns) {
		struct pollfd fd;

		is_there = td_rounds_turn(&rounds, now_ns, &wakeup_ns);
		fd = (struct pollfd){rounds.fd, POLLIN, 0};
		if (is_there || td_rounds_is_refused(&rounds))
			break;
		(void)poll(&fd, 1, timeout_ms(td_min_u64(wakeup_ns, end_ns), now_ns));
	}
	snprintf(record.node, sizeof(record.node), "%s", options->agent.node);
	if (is_there) {
		td_loads_note(&loads, &rounds.now, now_ns, load_ppm);
		td_record_take(&record, &rounds.now, load_ppm);
		td_record_write(&record, &text);
	}
	td_rounds_deinit(&rounds);
	if (!is_there)
		fprintf(stderr, "tandem-agent: no daemon answers at %s\n", options->socket);
	else if (!text.failed)
		printf("%s\n", text.text);
	is_there = is_there && !text.failed;
	td_text_deinit(&text);
	return is_there ? 0 : 1;
}

int main(int argc, char **argv)
{
	static struct options options = {
		.agent = {.prefix = "/tandem/v1/", .lease_s = 10, .refresh_ns = 5 * TD_NS_PER_S}};
	int status = td_command_answer(&command, argc, argv);
	struct td_err err = {0};

	if (status >= 0)
		return status;
	if (td_command_parse(&command, argc, argv, &options, &err) || complete(&options, &err))
		return td_command_fail(&command, err.msg, EXIT_USAGE);
	td_log_set_level(TD_LOG_INFO);
	status = options.prints ? print_record(&options) : run(&options);
	return td_output_end(PROGRAM, status, 1);
}
