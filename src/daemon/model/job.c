/* This file implements job.h. */
#include "daemon/model/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "daemon/model/node.h"
#include "proto/words.h"

#define WEIGHT_MAX 1000

static const char *const class_names[TD_CLASS_N] = {"online", "guaranteed", "besteffort"};

static int set_class(enum td_class *ret, const char *value, struct td_err *err)
{
	for (unsigned i = 0; i < TD_CLASS_N; i++) {
		if (strcmp(class_names[i], value))
			continue;
		*ret = (enum td_class)i;
		return 0;
	}
	return td_err_set(err, -EINVAL,
		"\"%.64s\" is not a class: expected online, guaranteed or besteffort", value);
}

static int set_upgrade(uint8_t *ret, const char *value, struct td_err *err)
{
	enum td_class class = TD_CLASS_BESTEFFORT;

	*ret = 0;
	if (!strcmp(value, "none"))
		return 0;
	if (set_class(&class, value, NULL) || class == TD_CLASS_BESTEFFORT)
		return td_err_set(err, -EINVAL,
			"\"%.64s\" is not valid: expected guaranteed, online or none", value);
	*ret = (uint8_t)(1 + class);
	return 0;
}

static int set_weight(uint32_t *ret, const char *value, struct td_err *err)
{
	uint64_t weight;
	int r = td_parse_u64(value, 1, WEIGHT_MAX, &weight, err);

	if (!r)
		*ret = (uint32_t)weight;
	return r;
}

static int set_limit(char (*ret)[TD_LIMIT_TEXT], const char *value, struct td_err *err)
{
	bool none = !strcmp(value, "none");
	int r = none ? 0 : td_parse_limit(value, NULL);

	if (r)
		return td_err_expected(err, r, value, TD_EXPECTED_LIMIT ", or none");
	strcpy(*ret, none ? "" : value);
	return 0;
}

static int set_share(uint32_t *ret, const char *value,
	int (*parse)(const char *text, uint32_t *ret_ppm, struct td_err *err), const char *expected,
	struct td_err *err)
{
	uint32_t ppm = 0;
	int r = strcmp(value, "none") ? parse(value, &ppm, NULL) : 0;

	if (r)
		return td_err_expected(err, r, value, expected);
	*ret = ppm;
	return 0;
}

const char *td_class_name(enum td_class class)
{
	return class_names[class];
}

enum setting {
	CLASS,
	UPGRADE,
	WEIGHT,
	MEM,
	MEM_SOFT,
	DUTY,
	SLACK,
	BATCH,
	PAUSED,
	SETTING_N,
};

static const struct {
	const char *key, *unit, *help;
} settings_table[SETTING_N] = {
	[CLASS] = {"class", "name", "online, guaranteed or besteffort: who goes first"},
	[UPGRADE] = {"upgrade", "name",
		"the class that the job gets as soon as its user's quota has room, or none"},
	[WEIGHT] = {"weight", "",
		"the length of the job's turns compared with other jobs of its class"},
	[MEM] = {"mem", "size",
		"the most memory that all processes of the job together may have on a GPU, or "
		"none"},
	[MEM_SOFT] = {"mem-soft", "size",
		"the most of that on the GPU itself: the rest lies on the host, or none"},
	[DUTY] = {"duty", "share", "the most of a GPU's time for each of its processes, or none"},
	[SLACK] = {"slack", "share",
		"guaranteed: how much longer than alone its steps may take, or none"},
	[BATCH] = {"batch", "", "for a service: the batch that it is to run with, or none"},
	[PAUSED] = {"paused", "on|off", "on: it may not use a GPU"},
};

static void format_share(uint32_t ppm, char *buf, size_t len)
{
	if (ppm)
		snprintf(buf, len, "%g%%", ppm / 1e4);
	else
		snprintf(buf, len, "none");
}

static void format_batch(uint32_t batch, char *buf, size_t len)
{
	if (batch)
		snprintf(buf, len, "%u", batch);
	else
		snprintf(buf, len, "none");
}

static void format_setting(
	const struct td_job_settings *settings, enum setting setting, char *buf, size_t len)
{
	switch (setting) {
	case CLASS: snprintf(buf, len, "%s", class_names[settings->class]); break;
	case UPGRADE:
		snprintf(buf, len, "%s",
			settings->upgrade ? class_names[settings->upgrade - 1] : "none");
		break;
	case WEIGHT: snprintf(buf, len, "%u", settings->weight); break;
	case MEM: snprintf(buf, len, "%s", *settings->mem ? settings->mem : "none"); break;
	case MEM_SOFT:
		snprintf(buf, len, "%s", *settings->mem_soft ? settings->mem_soft : "none");
		break;
	case DUTY: format_share(settings->duty_ppm, buf, len); break;
	case SLACK: format_share(settings->slack_ppm, buf, len); break;
	case BATCH: format_batch(settings->batch, buf, len); break;
	case PAUSED: snprintf(buf, len, "%s", settings->paused ? "on" : "off"); break;
	case SETTING_N: break;
	}
}

bool td_job_row(const struct td_job_settings *settings, size_t i, struct td_option_row *ret)
{
	if (i >= SETTING_N)
		return false;
	*ret = (struct td_option_row){.key = settings_table[i].key,
		.unit = settings_table[i].unit,
		.help = settings_table[i].help};
	format_setting(settings, (enum setting)i, ret->value, sizeof(ret->value));
	return true;
}

static int set_batch(uint32_t *batch, const char *value, struct td_err *err)
{
	uint64_t count = 0;

	if (strcmp(value, "none") && td_parse_u64(value, 1, TD_SERVICE_BATCH_MAX, &count, NULL))
		return td_err_expected(err, -EINVAL, value, "1 to 65536, or none");
	*batch = (uint32_t)count;
	return 0;
}

/* Sets the class by hand. That is meant to stay, so no automatic upgrade follows. */
static int change_class(struct td_job_settings *settings, const char *value, struct td_err *err)
{
	int r = set_class(&settings->class, value, err);

	if (!r)
		settings->upgrade = 0;
	return r;
}

static int set_setting(struct td_job_settings *settings, enum setting setting, const char *value,
	struct td_err *err)
{
	switch (setting) {
	case CLASS: return change_class(settings, value, err);
	case UPGRADE: return set_upgrade(&settings->upgrade, value, err);
	case WEIGHT: return set_weight(&settings->weight, value, err);
	case MEM: return set_limit(&settings->mem, value, err);
	case MEM_SOFT: return set_limit(&settings->mem_soft, value, err);
	case DUTY:
		return set_share(&settings->duty_ppm, value, td_parse_duty,
			TD_EXPECTED_DUTY ", or none", err);
	case SLACK:
		return set_share(&settings->slack_ppm, value, td_parse_slack,
			TD_EXPECTED_SLACK ", or none", err);
	case BATCH: return set_batch(&settings->batch, value, err);
	case PAUSED: return td_parse_bool(value, &settings->paused, err);
	case SETTING_N: break;
	}
	return -EINVAL;
}

int td_job_set(
	struct td_job_settings *settings, const char *key, const char *value, struct td_err *err)
{
	char keys[128] = "";

	for (unsigned i = 0; i < SETTING_N; i++) {
		size_t used = strlen(keys);
		struct td_err why = {0};
		int r;

		if (!strcmp(key, settings_table[i].key)) {
			r = set_setting(settings, (enum setting)i, value, &why);
			return r ? td_err_set(err, r, "%s: %.400s", key, why.msg) : 0;
		}
		snprintf(keys + used, sizeof(keys) - used, "%s%s",
			!i                   ? ""
			: i == SETTING_N - 1 ? " or "
					     : ", ",
			settings_table[i].key);
	}
	/* Users look for these two keys. */
	if (!strcmp(key, "share") || !strcmp(key, "sm-share"))
		return td_err_set(err, -EOPNOTSUPP,
			"the share of the SMs is no setting: see tandem share JOB SHARE");
	return td_err_set(
		err, -EINVAL, "\"%.64s\" is not an option of a job: expected %s", key, keys);
}

static struct td_job *find_job(const struct td_node *node, struct td_identity who, const char *name)
{
	struct td_list *it;

	td_list_for_each (it, &node->jobs) {
		struct td_job *job = td_container_of(it, struct td_job, of_node);

		if (*name && td_identity_is_same(job->who, who) && !strcmp(job->name, name))
			return job;
	}
	return NULL;
}

/* Inserts the job by its time of arrival, behind the jobs of the same time. */
static void line_up(struct td_node *node, struct td_job *job)
{
	struct td_list *before = node->jobs.prev;

	while (before != &node->jobs &&
		td_container_of(before, struct td_job, of_node)->arrived_ns > job->arrived_ns)
		before = before->prev;
	td_list_insert_before(before->next, &job->of_node);
}

/*
 * Sets the time of arrival that the client states. It affects only the order of its own user's
 * jobs. A time in the future is not accepted.
 */
static void arrive(struct td_node *node, struct td_job *job, uint64_t said_ns, uint64_t now_ns)
{
	uint64_t arrived_ns = said_ns && said_ns < now_ns ? said_ns : now_ns;

	job->came_back |= said_ns != 0;
	if (job->arrived_ns && job->arrived_ns <= arrived_ns)
		return;
	job->arrived_ns = arrived_ns;
	td_list_remove(&job->of_node);
	line_up(node, job);
}

struct td_job *td_job_join(struct td_node *node, struct td_identity who,
	const struct td_msg_hello *hello, uint64_t now_ns)
{
	char name[sizeof((struct td_job){0}.name)];
	struct td_job *job;

	snprintf(name, sizeof(name), "%.63s", hello->job);
	(void)td_printable(name);
	job = find_job(node, who, name);
	if (job) {
		job->processes++;
		arrive(node, job, hello->arrived_ns, now_ns);
		return job;
	}
	job = calloc(1, sizeof(*job));
	if (!job)
		return NULL;
	job->tenant = td_tenants_join(node, who);
	if (!job->tenant) {
		free(job);
		return NULL;
	}
	td_list_init(&job->of_node);
	td_list_init(&job->members);
	job->processes = 1;
	job->group = node->next_id++;
	job->who = who;
	strcpy(job->name, name);
	job->settings.class = hello->class < TD_CLASS_N ? hello->class : TD_CLASS_BESTEFFORT;
	job->settings.upgrade = hello->upgrade <= TD_CLASS_BESTEFFORT ? hello->upgrade : 0;
	/*
	 * The client has refused invalid values. The bounds here limit what a lying client can
	 * gain.
	 */
	job->settings.weight = hello->weight ? hello->weight : 1;
	if (job->settings.weight > WEIGHT_MAX)
		job->settings.weight = WEIGHT_MAX;
	(void)set_limit(&job->settings.mem, hello->mem, NULL);
	(void)set_limit(&job->settings.mem_soft, hello->mem_soft, NULL);
	job->settings.duty_ppm = hello->duty_ppm < TD_PPM ? hello->duty_ppm : 0;
	job->settings.slack_ppm = hello->slack_ppm < TD_PPM ? hello->slack_ppm : TD_PPM;
	job->settings.batch = hello->batch <= TD_SERVICE_BATCH_MAX ? hello->batch : 0;
	arrive(node, job, hello->arrived_ns, now_ns);
	return job;
}

void td_job_leave(struct td_job *job)
{
	if (--job->processes)
		return;
	td_list_remove(&job->of_node);
	td_tenant_charge(job, 0);
	td_tenants_leave(job->tenant);
	free(job);
}

/* Compares a name with a kept one, which may be cut to its first 63 bytes. */
static bool is_name(const char (*kept)[64], const char *text)
{
	return !strncmp(*kept, text, sizeof(*kept) - 1);
}

bool td_process_is_named(const struct td_process *process, const char *job)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)process->pid);
	return is_name(&process->job->name, job) || is_name(&process->name, job) ||
	       !strcmp(pid, job);
}

bool td_job_is_named(const struct td_job *job, const char *text)
{
	struct td_list *it;

	td_list_for_each (it, &job->members)
		if (td_process_is_named(td_container_of(it, struct td_process, of_job), text))
			return true;
	return false;
}

bool td_job_is_to_be_upgraded(const struct td_job *job)
{
	return job->settings.upgrade && job->settings.class == TD_CLASS_BESTEFFORT;
}

int td_process_backend(struct td_process *process, const struct td_msg_backend *msg)
{
	if (msg->kind >= TD_BACKEND_N || msg->reason >= TD_BACKEND_REASON_N)
		return -EPROTO;
	if (msg->kind != process->backend && !td_list_empty(&process->clients))
		return -EPROTO;
	process->backend = msg->kind;
	process->stays = msg->reason;
	snprintf(process->stays_for, sizeof(process->stays_for), "%.63s", msg->library);
	for (char *p = process->stays_for; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return 0;
}

int td_job_unknown(const char *name, struct td_err *err)
{
	return td_err_set(err, -ENOENT, "there is no job \"%.64s\": see tandem ps", name);
}
