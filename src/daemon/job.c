/* Jobs; see job.h. */
#include "daemon/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "daemon/capacity.h"
#include "daemon/node.h"

#define WEIGHT_MAX   1000
#define DUTY_MIN_PPM 10000
/* A share is checked against a whole of this many bytes; any will do. */
#define ANY_WHOLE (1ull << 40)

static int set_class(enum td_class *ret, const char *value, struct td_err *err)
{
	static const char *const classes[TD_CLASS_N] = {"online", "guaranteed", "besteffort"};

	for (unsigned i = 0; i < TD_CLASS_N; i++) {
		if (strcmp(classes[i], value))
			continue;
		*ret = (enum td_class)i;
		return 0;
	}
	return td_err_set(err, -EINVAL,
		"\"%.64s\" is not a class: expected online, guaranteed or besteffort", value);
}

static int set_weight(uint32_t *ret, const char *value, struct td_err *err)
{
	uint64_t weight;
	int r = td_parse_u64(value, 1, WEIGHT_MAX, &weight, err);

	if (!r)
		*ret = (uint32_t)weight;
	return r;
}

static int set_limit(char (*ret)[32], const char *value, struct td_err *err)
{
	uint64_t bytes;
	int r;

	if (!strcmp(value, "none")) {
		**ret = 0;
		return 0;
	}
	r = td_parse_size(value, ANY_WHOLE, &bytes, err);
	if (r)
		return r;
	if (!bytes || strlen(value) >= sizeof(*ret))
		return td_err_set(err, -ERANGE,
			"\"%.64s\" is out of range: expected more than nothing, or none", value);
	strcpy(*ret, value);
	return 0;
}

static int set_duty(uint32_t *ret, const char *value, struct td_err *err)
{
	uint32_t ppm;
	int r;

	if (!strcmp(value, "none")) {
		*ret = 0;
		return 0;
	}
	r = td_parse_ratio(value, &ppm, err);
	if (r)
		return r;
	if (ppm < DUTY_MIN_PPM)
		return td_err_set(err, -ERANGE,
			"\"%.64s\" is out of range: expected 1%% to 100%%, or none", value);
	*ret = ppm;
	return 0;
}

int td_job_set(
	struct td_job_settings *settings, const char *key, const char *value, struct td_err *err)
{
	if (!strcmp(key, "class"))
		return set_class(&settings->class, value, err);
	if (!strcmp(key, "weight"))
		return set_weight(&settings->weight, value, err);
	if (!strcmp(key, "paused"))
		return td_parse_bool(value, &settings->paused, err);
	if (!strcmp(key, "mem"))
		return set_limit(&settings->mem, value, err);
	if (!strcmp(key, "duty"))
		return set_duty(&settings->duty_ppm, value, err);
	return td_err_set(err, -EINVAL,
		"\"%.64s\" is not an option of a job: expected class, weight, mem, duty or paused",
		key);
}

static struct td_job *find(const struct td_node *node, uid_t uid, const char *name)
{
	struct td_list *it;

	td_list_for_each (it, &node->jobs) {
		struct td_job *job = td_container_of(it, struct td_job, of_node);

		if (*name && job->uid == uid && !strcmp(job->name, name))
			return job;
	}
	return NULL;
}

struct td_job *td_job_join(struct td_node *node, uid_t uid, const struct td_msg_hello *hello)
{
	char name[sizeof((struct td_job){0}.name)];
	struct td_job *job;

	snprintf(name, sizeof(name), "%.63s", hello->job);
	job = find(node, uid, name);
	if (job) {
		job->processes++;
		return job;
	}
	job = calloc(1, sizeof(*job));
	if (!job)
		return NULL;
	job->processes = 1;
	job->group = node->next_id++;
	job->uid = uid;
	strcpy(job->name, name);
	job->settings.class = hello->class < TD_CLASS_N ? hello->class : TD_CLASS_BESTEFFORT;
	/* The client has refused what makes no sense; what one that lies may gain by it is bounded. */
	job->settings.weight = hello->weight ? hello->weight : 1;
	if (job->settings.weight > WEIGHT_MAX)
		job->settings.weight = WEIGHT_MAX;
	(void)set_limit(&job->settings.mem, hello->mem, NULL);
	job->settings.duty_ppm = hello->duty_ppm < TD_PPM ? hello->duty_ppm : 0;
	td_list_append(&node->jobs, &job->of_node);
	return job;
}

void td_job_leave(struct td_job *job)
{
	if (--job->processes)
		return;
	td_list_remove(&job->of_node);
	free(job);
}

/* Named by job id, name or pid. */
static bool is_named(const struct td_process *process, const char *job)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)process->pid);
	return !strcmp(process->job->name, job) || !strcmp(process->name, job) || !strcmp(pid, job);
}

/* The job's processes, and no others: those of other users are not to be flooded by what one sets. */
static void tell(struct td_node *node, const struct td_job *job)
{
	const struct td_job_settings *settings = &job->settings;
	struct td_msg msg = {.type = TD_MSG_TYPE_settings};
	struct td_list *it;

	msg.settings.class = (uint8_t)settings->class;
	msg.settings.weight = settings->weight;
	msg.settings.duty_ppm = settings->duty_ppm;
	snprintf(msg.settings.mem, sizeof(msg.settings.mem), "%s", settings->mem);
	td_list_for_each (it, &node->processes) {
		const struct td_process *process = td_container_of(it, struct td_process, of_node);

		/* For its next daemon. */
		if (process->job == job)
			node->io.send(process->peer, &msg);
	}
	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_node);

		if (client->process->job == job)
			td_capacity_tell(node, client);
	}
}

int td_node_check_job(const struct td_node *node, uid_t uid, const char *name, const char *key,
	const char *value, struct td_err *err)
{
	bool found = false;
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		const struct td_process *process = td_container_of(it, struct td_process, of_node);
		struct td_job_settings copy = process->job->settings;
		int r;

		if (!is_named(process, name))
			continue;
		if (uid && uid != process->uid)
			return td_err_set(
				err, -EPERM, "job \"%.64s\" belongs to another user", name);
		r = td_job_set(&copy, key, value, err);
		if (r)
			return r;
		found = true;
	}
	if (!found)
		return td_err_set(err, -ENOENT, "there is no job \"%.64s\": see tandem ps", name);
	return 0;
}

/* All processes of that name, or none. */
int td_node_set_job(struct td_node *node, uid_t uid, const char *name, const char *key,
	const char *value, uint64_t now_ns, struct td_err *err)
{
	int r = td_node_check_job(node, uid, name, key, value, err);
	char what[128];
	struct td_list *it;

	if (r)
		return r;
	snprintf(what, sizeof(what), "%.40s=%.40s", key, value);
	td_list_for_each (it, &node->processes) {
		const struct td_process *process = td_container_of(it, struct td_process, of_node);

		if (!is_named(process, name))
			continue;
		(void)td_job_set(&process->job->settings, key, value, NULL);
		process->job->changed = true;
		td_node_event(node, TD_EVENT_OPTION, process, 0, now_ns, 0, 0, what);
	}
	td_list_for_each (it, &node->jobs) {
		struct td_job *job = td_container_of(it, struct td_job, of_node);

		if (job->changed)
			tell(node, job);
		job->changed = false;
	}
	return 0;
}
