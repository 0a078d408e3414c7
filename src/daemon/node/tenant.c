/*
 * Enforces the quotas of users; see tenant.h. A job's charge is stored with the job (0: not
 * admitted), so that a lowered quota affects only later jobs.
 */
#include "daemon/node/tenant.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bounds.h"
#include "base/err.h"
#include "base/parse.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/node/gpus.h"

static struct td_job *job_at(struct td_list *it)
{
	return td_container_of(it, struct td_job, of_node);
}

static bool is_protected(const struct td_job_settings *settings)
{
	return settings->class != TD_CLASS_BESTEFFORT;
}

/*
 * Returns the part of a GPU that is charged: the memory limit, or the job's memory there if that is
 * more. So lowering a limit below the memory in use gives the user no room. A capacity of 0 is
 * unknown; then the part is known only for a limit that is given as a share.
 */
static uint64_t part_ppm(
	const struct td_job_settings *settings, uint64_t capacity_bytes, uint64_t demanded_bytes)
{
	uint64_t capacity = capacity_bytes ? capacity_bytes : TD_PPM, bytes, ppm;

	if (!*settings->mem || td_parse_size(settings->mem, capacity, &bytes, NULL))
		return TD_PPM;
	if (bytes < demanded_bytes)
		bytes = demanded_bytes;
	if (bytes >= capacity)
		return TD_PPM;
	ppm = (uint64_t)((unsigned __int128)bytes * TD_PPM / capacity);
	return ppm ? ppm : 1;
}

/* Returns the capacity of the smallest GPU known to this node; 0 if none is known. */
static uint64_t smallest_bytes(const struct td_node *node)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < node->gpu_count; i++)
		if (node->gpus[i].used && node->gpus[i].total_bytes < least)
			least = node->gpus[i].total_bytes;
	for (uint32_t i = 0; i < node->listed_count; i++)
		if (node->listed[i].total_bytes && node->listed[i].total_bytes < least)
			least = node->listed[i].total_bytes;
	return least == UINT64_MAX ? 0 : td_options_capacity(&node->options, least);
}

/* Returns the charge of a job without a limit: whole GPUs, whatever their size. */
static uint64_t whole_ppm(const struct td_job *job)
{
	uint32_t given = job && job->placed_count ? job->placed_count : 1;

	return TD_PPM * td_max_u64(job ? job->gpus : 0, given);
}

/* Returns the job's charge under these settings. */
static uint64_t charge_ppm(const struct td_node *node, const struct td_job *job,
	const struct td_job_settings *settings)
{
	uint64_t ppm = 0;
	uint32_t count = 0, given = job ? job->placed_count : 0;

	if (!is_protected(settings))
		return 0;
	if (!*settings->mem)
		return whole_ppm(job);
	for (uint32_t i = 0; job && i < node->gpu_count; i++) {
		if (!job->on[i].clients) /* no process of the job used that GPU in the last step */
			continue;
		ppm += part_ppm(settings,
			td_options_capacity(&node->options, node->gpus[i].total_bytes),
			job->on[i].demanded_bytes);
		count++;
	}
	given = given ? given : 1;
	for (; count < given; count++)
		ppm += part_ppm(settings, smallest_bytes(node), 0);
	return ppm;
}

/* Returns the sum over the user's admitted jobs, without the job `beside` (NULL: over all). */
static struct td_usage used_beside(
	const struct td_node *node, struct td_identity who, const struct td_job *beside)
{
	const struct td_tenant *user = beside ? beside->tenant : td_tenants_find(node, who);
	struct td_usage usage = user ? user->used : (struct td_usage){0};

	if (beside && beside->charged_ppm) {
		usage.gpus_ppm -= beside->charged_ppm;
		usage.jobs--;
	}
	return usage;
}

/* Returns how many users share the node, counting `uid` even if he has no job yet. */
static uint32_t count_users(const struct td_node *node, struct td_identity who)
{
	return node->tenant_count + !td_tenants_find(node, who);
}

static uint64_t quota_gpus_ppm(const struct td_node *node, struct td_identity who, uint32_t users)
{
	if (node->options.quota_gpus_ppm != TD_QUOTA_AUTO)
		return node->options.quota_gpus_ppm;
	if (users < 2 || td_node_is_owner(node, who))
		return UINT64_MAX;
	return (uint64_t)td_gpus_count(node) * TD_PPM / users;
}

static bool exceeds_jobs(
	const struct td_node *node, const struct td_usage *before, const struct td_usage *after)
{
	return after->jobs > node->options.quota_jobs && after->jobs > before->jobs;
}

static bool exceeds(const struct td_node *node, struct td_identity who,
	const struct td_usage *before, const struct td_usage *after)
{
	return exceeds_jobs(node, before, after) ||
	       (after->gpus_ppm > before->gpus_ppm &&
		       after->gpus_ppm > quota_gpus_ppm(node, who, count_users(node, who)));
}

/*
 * Sets the error with a next step that helps: less memory does not help a user with one job too
 * many, and waiting does not help where no job is allowed.
 */
static int refuse(const struct td_node *node, struct td_identity who, const struct td_usage *before,
	const struct td_usage *after, struct td_err *err)
{
	const struct td_options *options = &node->options;
	uint32_t users = count_users(node, who);
	uint64_t quota = quota_gpus_ppm(node, who, users);
	char why[96] = "quota.gpus";

	if (options->quota_gpus_ppm == TD_QUOTA_AUTO)
		snprintf(why, sizeof(why),
			"quota.gpus=auto: an equal part for each of the %u users here", users);
	if (!options->quota_jobs || !options->quota_gpus_ppm)
		return td_err_set(err, -EDQUOT,
			"beyond the quota of protected jobs: no user may have any here (%s=0): "
			"leave it besteffort",
			options->quota_jobs ? "quota.gpus" : "quota.jobs");
	if (exceeds_jobs(node, before, after))
		return td_err_set(err, -EDQUOT,
			"beyond the quota of protected jobs: user %u has %u of %u (quota.jobs), "
			"and "
			"this would make %u. Wait until one has ended, or give it "
			"upgrade=guaranteed: besteffort until then",
			(unsigned)who.uid, before->jobs, options->quota_jobs, after->jobs);
	return td_err_set(err, -EDQUOT,
		"beyond the quota of protected jobs: user %u has %g of %g GPUs with them "
		"(%s), and this would make %g. Give it less memory (mem): it holds the "
		"part "
		"of a GPU that that is%s",
		(unsigned)who.uid, (double)before->gpus_ppm / TD_PPM, (double)quota / TD_PPM, why,
		(double)after->gpus_ppm / TD_PPM,
		after->gpus_ppm - before->gpus_ppm > quota
			? ""
			: ". Or upgrade=guaranteed: besteffort until there is room");
}

/*
 * Computes, in one pass over the jobs, what each user would have after the change of a quota, and
 * which users the change affects.
 */
static void gather_after(const struct td_node *node, const struct td_tenant_change *change)
{
	struct td_list *it;

	td_list_for_each (it, &node->tenants) {
		struct td_tenant *user = td_container_of(it, struct td_tenant, of_node);

		user->after = (struct td_usage){0};
		user->is_meant = false;
	}
	td_list_for_each (it, &node->jobs) {
		struct td_job *job = job_at(it);
		struct td_job_settings settings = job->settings;
		uint64_t ppm = job->charged_ppm;

		if (td_identity_may(change->who, job->who) && td_job_is_named(job, change->job)) {
			job->tenant->is_meant = true;
			if (!td_job_set(&settings, change->key, change->value, NULL))
				ppm = charge_ppm(node, job, &settings);
		}
		job->tenant->after.gpus_ppm += ppm;
		job->tenant->after.jobs += ppm != 0;
	}
}

int td_tenant_check(
	const struct td_node *node, const struct td_tenant_change *change, struct td_err *err)
{
	struct td_list *it;

	gather_after(node, change);
	td_list_for_each (it, &node->tenants) {
		const struct td_tenant *user = td_container_of(it, struct td_tenant, of_node);

		if (user->is_meant && exceeds(node, user->who, &user->used, &user->after))
			return refuse(node, user->who, &user->used, &user->after, err);
	}
	return 0;
}

static bool fits(const struct td_node *node, struct td_identity who, const struct td_job *job,
	uint64_t ppm, struct td_err *err)
{
	struct td_usage before = used_beside(node, who, job), after = before;

	after.gpus_ppm += ppm;
	after.jobs++;
	if (!exceeds(node, who, &before, &after))
		return true;
	(void)refuse(node, who, &before, &after, err);
	return false;
}

bool td_tenant_has_a_chance(const struct td_node *node, const struct td_job *job)
{
	struct td_job_settings settings = job->settings;
	struct td_usage none = {0}, alone = {.jobs = 1};

	settings.class = (enum td_class)(settings.upgrade - 1);
	alone.gpus_ppm = charge_ppm(node, job, &settings);
	return !exceeds(node, job->who, &none, &alone);
}

/* Returns whether the job waits for an upgrade that its user's whole quota would have room for. */
static bool waits(const struct td_node *node, const struct td_job *job)
{
	return td_job_is_to_be_upgraded(job) && td_tenant_has_a_chance(node, job);
}

/* Returns the first of the user's jobs that waits, or NULL. */
static const struct td_job *first_waiting(const struct td_node *node, struct td_identity who)
{
	struct td_list *it;

	td_list_for_each (it, &node->jobs)
		if (td_identity_is_counted_as(job_at(it)->who, who) && waits(node, job_at(it)))
			return job_at(it);
	return NULL;
}

static int refuse_newcomer(struct td_identity who, const struct td_job *first, struct td_err *err)
{
	return td_err_set(err, -EDQUOT,
		"job \"%s\" of user %u came first, and waits for room in the quota of protected "
		"jobs. Wait behind it as besteffort (upgrade=guaranteed), or take it off the line "
		"(upgrade=none)",
		*first->name ? first->name : "(unnamed)", (unsigned)who.uid);
}

int td_tenant_check_new(const struct td_node *node, struct td_identity who, enum td_class class,
	const char *mem, struct td_err *err)
{
	struct td_job_settings settings = {.class = class, .weight = 1};
	const struct td_job *first = first_waiting(node, who);
	int r = *mem ? td_job_set(&settings, "mem", mem, err) : 0;

	if (r || !is_protected(&settings))
		return r;
	if (first)
		return refuse_newcomer(who, first, err);
	return fits(node, who, NULL, charge_ppm(node, NULL, &settings), err) ? 0 : -EDQUOT;
}

void td_tenant_changed(struct td_node *node)
{
	struct td_list *it;

	td_list_for_each (it, &node->jobs)
		if (job_at(it)->changed)
			td_tenant_charge(
				job_at(it), charge_ppm(node, job_at(it), &job_at(it)->settings));
}

static void reclass(struct td_node *node, struct td_job *job, enum td_class class, uint8_t upgrade,
	const char *why, uint64_t now_ns)
{
	struct td_list *it;
	char detail[160];

	job->settings.class = class;
	job->settings.upgrade = upgrade;
	snprintf(detail, sizeof(detail), "class=%s: %s", td_class_name(class), why);
	td_list_for_each (it, &job->members)
		td_node_event(node, TD_EVENT_OPTION, td_container_of(it, struct td_process, of_job),
			TD_GPU_ANY, now_ns, 0, 0, detail);
	td_job_tell(node, job);
}

static bool is_newcomer(const struct td_job *job)
{
	return !job->charged_ppm && !job->came_back;
}

/*
 * Returns whether the job may be admitted. The caller goes over the jobs in order of arrival, so
 * tenant->waits is set if an earlier job of the user waits.
 */
static bool may_have(const struct td_node *node, const struct td_job *job, uint64_t ppm)
{
	if (ppm <= job->charged_ppm)
		return true;
	if (is_newcomer(job) && job->tenant->waits)
		return false;
	return fits(node, job->who, job, ppm, NULL);
}

/*
 * Decides whether a protected job fits its user's quota. A job that does not fit becomes besteffort
 * until there is room.
 */
static void judge_job(struct td_node *node, struct td_job *job, uint64_t now_ns)
{
	uint64_t ppm = charge_ppm(node, job, &job->settings);

	if (may_have(node, job, ppm)) {
		td_tenant_charge(job, ppm);
		return;
	}
	td_tenant_charge(job, 0);
	reclass(node, job, TD_CLASS_BESTEFFORT, (uint8_t)(1 + job->settings.class),
		"beyond its user's quota, until there is room", now_ns);
}

static void upgrade(struct td_node *node, struct td_job *job, uint64_t now_ns)
{
	struct td_job_settings settings = job->settings;
	uint64_t ppm;

	settings.class = (enum td_class)(settings.upgrade - 1);
	ppm = charge_ppm(node, job, &settings);
	if (job->tenant->waits || !fits(node, job->who, job, ppm, NULL))
		return;
	td_tenant_charge(job, ppm);
	reclass(node, job, settings.class, 0, "there is room in its user's quota", now_ns);
}

/*
 * Begins a pass over the jobs, in order of arrival. tenant->waits is set in it when one of the
 * user's waiting jobs has been passed.
 */
static void begin_pass(const struct td_node *node)
{
	struct td_list *it;

	td_list_for_each (it, &node->tenants)
		td_container_of(it, struct td_tenant, of_node)->waits = false;
}

static void judge_all(struct td_node *node, bool newcomers, uint64_t now_ns)
{
	struct td_list *it;

	begin_pass(node);
	td_list_for_each (it, &node->jobs) {
		struct td_job *job = job_at(it);

		if (is_protected(&job->settings) && is_newcomer(job) == newcomers)
			judge_job(node, job, now_ns);
		job->tenant->waits |= waits(node, job);
	}
}

/*
 * Takes admission back from each user's latest jobs that exceed his part, which got smaller when
 * another user came. They wait for an upgrade. Only for quota.gpus=auto: a quota set by hand takes
 * nothing from admitted jobs.
 */
static void step_down(struct td_node *node, uint64_t now_ns)
{
	struct td_list *it;

	td_list_for_each (it, &node->tenants)
		td_container_of(it, struct td_tenant, of_node)->after = (struct td_usage){0};
	td_list_for_each (it, &node->jobs) {
		struct td_job *job = job_at(it);
		struct td_usage *kept = &job->tenant->after;
		uint64_t quota = quota_gpus_ppm(node, job->who, node->tenant_count);

		if (kept->gpus_ppm + job->charged_ppm <= quota) {
			kept->gpus_ppm += job->charged_ppm;
			continue;
		}
		td_tenant_charge(job, 0);
		reclass(node, job, TD_CLASS_BESTEFFORT, (uint8_t)(1 + job->settings.class),
			"other users have jobs here, and it exceeds its user's part of the GPUs "
			"(quota.gpus=auto)",
			now_ns);
	}
}

/*
 * Returns whether a judgement could change something: a job's charge differs from what is charged,
 * as a new job's does, or a job waits for an upgrade.
 */
static bool is_to_be_judged(const struct td_node *node)
{
	struct td_list *it;

	td_list_for_each (it, &node->jobs) {
		const struct td_job *job = job_at(it);
		uint64_t ppm = 0;

		if (!is_protected(&job->settings) && job->settings.upgrade)
			return true;
		if (is_protected(&job->settings))
			ppm = *job->settings.mem ? charge_ppm(node, job, &job->settings)
						 : whole_ppm(job);
		if (is_protected(&job->settings) && ppm != job->charged_ppm)
			return true;
	}
	return false;
}

/* Judges admitted jobs first, then waiting jobs, then new ones. */
uint64_t td_tenant_step(struct td_node *node, uint64_t now_ns)
{
	bool is_auto = node->options.quota_gpus_ppm == TD_QUOTA_AUTO;
	uint64_t wakeup = td_tenants_step(node, now_ns);
	struct td_list *it;

	if (is_auto && node->tenant_count > 1)
		step_down(node, now_ns);
	if (!is_to_be_judged(node)) {
		begin_pass(node);
		return is_auto ? wakeup : UINT64_MAX;
	}
	judge_all(node, false, now_ns);
	begin_pass(node);
	td_list_for_each (it, &node->jobs) {
		struct td_job *job = job_at(it);

		if (td_job_is_to_be_upgraded(job))
			upgrade(node, job, now_ns);
		job->tenant->waits |= waits(node, job);
	}
	judge_all(node, true, now_ns);
	return is_auto ? wakeup : UINT64_MAX;
}
