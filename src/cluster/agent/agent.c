/* This file implements agent.h. */
#include "cluster/agent/agent.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/text.h"
#include "base/time.h"
#include "proto/proto.h"
#include "proto/socket.h"

#define LEAST_NS    TD_NS_PER_S          /* between two writes */
#define PATIENCE_NS (200 * TD_NS_PER_MS) /* for the daemon to take a setting */
#define FIRST_NS    (3 * TD_NS_PER_S)    /* so long the first record waits for the daemon */

bool td_agent_is_name(const char *name)
{
	size_t length = strlen(name);

	for (const char *c = name; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '/' || *c == '"' || *c == '\\')
			return false;
	return length && length < TD_RECORD_NAME && *name != '.';
}

int td_agent_init(
	struct td_agent *agent, const struct td_agent_options *options, struct td_state *state)
{
	char key[TD_STATE_KEY_MAX];
	int r;

	memset(agent, 0, sizeof(*agent));
	agent->options = *options;
	agent->state = state;
	agent->assign.folder_fd = -1;
	td_rounds_init(&agent->rounds, options->socket);
	if (!td_agent_is_name(options->node) ||
		snprintf(key, sizeof(key), "%snode/%s", options->prefix, options->node) >=
			(int)sizeof(key))
		return -EINVAL;
	strcpy(agent->now.node, options->node);
	r = td_presence_init(&agent->presence, state, key, options->lease_s);
	if (!r)
		r = td_assign_init(
			&agent->assign, state, options->prefix, options->folder, options->node);
	if (!r)
		r = td_publish_init(
			&agent->publish, state, options->prefix, options->node, options->profiles);
	return r;
}

void td_agent_deinit(struct td_agent *agent)
{
	td_presence_end(&agent->presence);
	td_rounds_deinit(&agent->rounds);
	td_assign_deinit(&agent->assign);
	td_publish_deinit(&agent->publish);
}

/* Brings agent->now up to date. */
static void look(struct td_agent *agent, bool is_new, uint64_t now_ns)
{
	uint32_t load_ppm[TD_RECORD_GPUS];

	if (is_new) {
		td_loads_note(&agent->loads, &agent->rounds.now, now_ns, load_ppm);
		td_record_take(&agent->now, &agent->rounds.now, load_ppm);
		return;
	}
	if (agent->rounds.now.time_ns || !agent->now.answers)
		return;
	agent->now.answers = false;
	agent->now.jobs = agent->now.more_jobs = 0;
	for (uint32_t i = 0; i < agent->now.gpus; i++)
		agent->now.gpu[i].accepts = false;
}

static int write_record(struct td_agent *agent, uint64_t now_ns)
{
	struct td_text text = {0};
	int r;

	td_record_write(&agent->now, &text);
	r = text.failed ? -ENOMEM
			: td_presence_put(&agent->presence, text.text, text.length, now_ns);
	td_text_deinit(&text);
	if (r)
		return r;
	agent->written = agent->now;
	agent->written_ns = now_ns;
	agent->writes++;
	return 0;
}

/*
 * Gives a program the class of its job's assignment. The next round shows whether the daemon has
 * done it.
 */
static void upgrade(struct td_agent *agent, const char *pid)
{
	struct td_msg msg = {
		.type = TD_MSG_TYPE_set, .set = {.key = "class", .value = "guaranteed"}};
	int fd = td_socket_connect(agent->options.socket, PATIENCE_NS);

	snprintf(msg.set.job, sizeof(msg.set.job), "%s", pid);
	if (fd < 0)
		return;
	if (!td_socket_send(fd, &msg, NULL, 0) && td_socket_recv(fd, &msg, NULL, 0) >= 0)
		agent->upgrades++;
	close(fd);
}

/* Whether a job or a program of somebody else has this name, by which he would be upgraded, too. */
static bool is_name_of_another(const struct td_snapshot *snapshot, const char *name, uint32_t uid)
{
	for (size_t i = 0; i < snapshot->job_count; i++) {
		const struct td_msg_job *said = &snapshot->jobs[i].said;

		if (said->uid != uid && (!strcmp(said->job, name) || !strcmp(said->name, name)))
			return true;
	}
	return false;
}

/*
 * Upgrades the guests that have guaranteed resources now, by the number of their process: anybody
 * can call his job slurm.12, but that job was given to one user.
 */
static void upgrade_all(struct td_agent *agent)
{
	const struct td_snapshot *snapshot = &agent->rounds.now;
	char pid[16];

	for (size_t i = 0; i < snapshot->job_count; i++) {
		const struct td_msg_job *said = &snapshot->jobs[i].said;

		snprintf(pid, sizeof(pid), "%u", said->pid);
		if (!strcmp(said->class, "besteffort") &&
			td_assign_is_guaranteed(&agent->assign, said->job, said->uid) &&
			!is_name_of_another(snapshot, pid, said->uid))
			upgrade(agent, pid);
	}
}

/* Whether to write now. *ret_when_ns is when to look again. */
static bool is_due(const struct td_agent *agent, uint64_t now_ns, uint64_t *ret_when_ns)
{
	bool is_there = td_presence_is_there(&agent->presence, now_ns);
	uint64_t refresh_ns = agent->written_ns + agent->options.refresh_ns;

	*ret_when_ns = agent->begun_ns + FIRST_NS;
	if (!agent->written_ns && !agent->now.answers && now_ns < *ret_when_ns)
		return false;
	*ret_when_ns = td_max_u64(agent->try_ns, is_there ? refresh_ns : 0);
	if (now_ns < agent->try_ns)
		return false;
	return !is_there || now_ns >= refresh_ns || td_record_differs(&agent->written, &agent->now);
}

uint64_t td_agent_turn(struct td_agent *agent, uint64_t now_ns)
{
	uint64_t rounds_ns, when_ns, assign_ns = UINT64_MAX, publish_ns;
	uint64_t state_ns = td_state_turn(agent->state, now_ns);
	bool is_new = td_rounds_turn(&agent->rounds, now_ns, &rounds_ns);
	int r, assigned, published;

	if (!agent->begun_ns)
		agent->begun_ns = now_ns;
	look(agent, is_new, now_ns);
	r = td_presence_turn(&agent->presence, now_ns);
	if (is_due(agent, now_ns, &when_ns)) {
		agent->try_ns = now_ns + LEAST_NS;
		r = write_record(agent, now_ns);
		(void)is_due(agent, now_ns, &when_ns);
	}
	assigned = td_assign_turn(&agent->assign, now_ns, &assign_ns);
	published = td_publish_turn(&agent->publish, now_ns, &publish_ns);
	r = r ? r : assigned ? assigned : published;
	if (is_new)
		upgrade_all(agent);
	agent->trouble = r;
	when_ns = td_min_u64(when_ns, td_min_u64(state_ns, rounds_ns));
	if (agent->presence.lease)
		when_ns = td_min_u64(when_ns, agent->presence.keep_ns);
	return td_min_u64(when_ns, td_min_u64(assign_ns, publish_ns));
}
