/*
 * The SPANK plugin: implements --tandem of srun, sbatch and salloc, and sets the environment of a
 * job's programs.
 *
 * A line of plugstack.conf loads it, with the paths of this node:
 *
 *   optional LIBDIR/tandem/spank_tandem.so lib=LIBDIR/libtandem.so socket=PATH tandem=PATH
 *
 * srun, sbatch and salloc check the value and refuse a bad one with a sentence. They hand it to
 * slurmctld in the job's control environment, where job_submit_tandem.so counts it. On the node
 * slurmstepd sets the variables of libtandem.so before each task, so limits hold from the first
 * call. To tandemd all steps of a Slurm job on a node are one job, so its limits apply to them
 * together.
 *
 * A job uses as many of its node's GPUs as it has asked for. tandemd chooses those with most room
 * when the first one is used. Their UUIDs come from `tandem gpu`, if tandem=PATH names that
 * program. Otherwise the job uses the first GPU, which is right on nodes that have only one.
 *
 * Where tandem-sched has placed the job, the record of the job names its GPUs (comment.h), and it
 * uses those.
 *
 * Without the option nothing changes. A program that drops LD_PRELOAD runs without tandem.
 */
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "slurm/comment.h"
#include "slurm/spec.h"

#define PATH_LEN 1024

#pragma GCC visibility push(default)
extern const char plugin_name[], plugin_type[];
extern const unsigned int plugin_version, spank_plugin_version;
SPANK_PLUGIN(tandem, 1)
int slurm_spank_init(spank_t spank, int argc, char **argv);
int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv);
int slurm_spank_task_init(spank_t spank, int argc, char **argv);
#pragma GCC visibility pop

static struct td_slurm_spec spec;
static char text[TD_SLURM_SPEC_MAX]; /* "": the option was not given */

static int take(int value, const char *argument, int remote)
{
	struct td_err err = {0};

	(void)value;
	if (td_slurm_spec_parse(argument, &spec, &err)) {
		if (remote)
			slurm_error("--tandem: %s", err.msg);
		else
			slurm_spank_log("--tandem: %s", err.msg);
		return ESPANK_BAD_ARG;
	}
	snprintf(text, sizeof(text), "%s", argument);
	return ESPANK_SUCCESS;
}

static struct spank_option option = {
	.name = (char *)"tandem",
	.arginfo = (char *)"SHARE[,mem=8Gi,class=guaranteed,...]",
	.usage = (char *)"a part of a GPU, such as 0.5, shared by tandem",
	.has_arg = 1,
	.cb = take,
};

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	switch (spank_context()) {
	case S_CTX_LOCAL:
	case S_CTX_ALLOCATOR:
	case S_CTX_REMOTE: return spank_option_register(spank, &option);
	case S_CTX_ERROR:
	case S_CTX_SLURMD:
	case S_CTX_JOB_SCRIPT: break;
	}
	return ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!*text || spank_context() == S_CTX_REMOTE)
		return ESPANK_SUCCESS;
	return spank_job_control_setenv(spank, "TANDEM", text, 1);
}

/* Returns the value of NAME=value among the words of plugstack.conf, or NULL. */
static const char *argument_of(int argc, char **argv, const char *name)
{
	size_t len = strlen(name);

	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], name, len) && argv[i][len] == '=')
			return argv[i] + len + 1;
	return NULL;
}

static int set(spank_t spank, const char *name, const char *value)
{
	int r = spank_setenv(spank, name, value, 1);

	if (r)
		slurm_error("tandem: %s cannot be set: %s", name, spank_strerror(r));
	return r;
}

static int preload(spank_t spank, const char *library)
{
	char others[PATH_LEN] = "", all[2 * PATH_LEN];
	int r = spank_getenv(spank, "LD_PRELOAD", others, sizeof(others));

	if (r && r != ESPANK_ENV_NOEXIST) {
		slurm_error("tandem: LD_PRELOAD is too long");
		return r;
	}
	if (strstr(others, library)) /* an outer step of the job has set it already */
		return ESPANK_SUCCESS;
	snprintf(all, sizeof(all), "%s%s%s", library, *others ? ":" : "", others);
	return set(spank, "LD_PRELOAD", all);
}

/* Sets the job's name and id, which tandem ps, the limits and the epilog use. */
static int name_job(spank_t spank)
{
	char name[64] = "slurm", id[32];
	uint32_t job = 0;
	int r;

	r = spank_get_item(spank, S_JOB_ID, &job);
	if (r) {
		slurm_error("tandem: the number of the job is not known: %s", spank_strerror(r));
		return r;
	}
	snprintf(id, sizeof(id), "slurm.%u", job);
	(void)spank_getenv(spank, "SLURM_JOB_NAME", name, sizeof(name));
	r = set(spank, "TANDEM_JOB", id);
	return r ? r : set(spank, "TANDEM_NAME", name);
}

/*
 * Writes the UUIDs of the node's GPUs, separated by commas; "" if tandemd does not list them. Runs
 * in the task's own process, before that becomes the program.
 */
static void list_gpus(const char *tandem, const char *socket, char *ret, size_t len)
{
	char command[2 * PATH_LEN], line[8192];
	size_t used = 0;
	FILE *in;

	*ret = 0;
	if (strchr(tandem, '\'') || (socket && strchr(socket, '\'')) ||
		snprintf(command, sizeof(command), "TANDEM_SOCKET='%s' '%s' gpu --json 2>/dev/null",
			socket ? socket : "", tandem) >= (int)sizeof(command))
		return;
	in = popen(command, "re");
	while (in && fgets(line, sizeof(line), in))
		for (const char *at = line; (at = strstr(at, "\"uuid\": \"")); at++) {
			size_t n = strcspn(at + 9, "\"");

			if (used + n + 2 > len)
				continue;
			used += (size_t)snprintf(
				ret + used, len - used, "%s%.*s", used ? "," : "", (int)n, at + 9);
		}
	if (in)
		(void)pclose(in);
}

/* Reads where tandem-sched has placed the job. Returns false if it has not. */
static bool read_placement(spank_t spank, struct td_slurm_comment *ret)
{
	job_info_msg_t *jobs = NULL;
	uint32_t job = 0;
	bool placed;

	if (spank_get_item(spank, S_JOB_ID, &job) || slurm_load_job(&jobs, job, SHOW_ALL))
		return false;
	placed = jobs->record_count == 1 &&
		 !td_slurm_comment_parse(jobs->job_array[0].admin_comment, ret) && ret->gpus;
	slurm_free_job_info_msg(jobs);
	return placed;
}

/* Keeps the placement's UUIDs of a list with commas. Returns false if the list is too short. */
static bool keep_placed(const struct td_slurm_comment *placement, char *list)
{
	char kept[4096];
	size_t used = 0;

	for (uint32_t k = 0; k < placement->gpus; k++) {
		const char *at = list;
		size_t n;

		for (uint32_t skip = placement->gpu[k]; at && skip; skip--) {
			at = strchr(at, ',');
			at = at ? at + 1 : NULL;
		}
		if (!at)
			return false;
		n = strcspn(at, ",");
		if (used + n + 2 > sizeof(kept))
			return false;
		used += (size_t)snprintf(
			kept + used, sizeof(kept) - used, "%s%.*s", used ? "," : "", (int)n, at);
	}
	strcpy(list, kept);
	return true;
}

static int choose_gpus(spank_t spank, const char *tandem, const char *socket)
{
	struct td_slurm_comment placement;
	char list[4096], count[12];
	int r;

	list_gpus(tandem, socket, list, sizeof(list));
	if (!*list)
		return ESPANK_SUCCESS;
	if (read_placement(spank, &placement) && !keep_placed(&placement, list)) {
		slurm_error("tandem: the job was placed on GPU %u of this node, which tandemd "
			    "does not list",
			placement.gpu[placement.gpus - 1]);
		return ESPANK_ERROR;
	}
	snprintf(count, sizeof(count), "%u", spec.gpus);
	r = set(spank, "TANDEM_GPUS", list);
	return r ? r : set(spank, "TANDEM_GPU_COUNT", count);
}

int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
	const char *library = argument_of(argc, argv, "lib"), *name;
	const char *socket = argument_of(argc, argv, "socket");
	const char *tandem = argument_of(argc, argv, "tandem");
	char value[TD_JOB_VALUE_MAX];
	int r;

	if (!*text)
		return ESPANK_SUCCESS;
	if (!library || *library != '/' || access(library, R_OK)) {
		slurm_error("tandem: lib=%s in plugstack.conf is not a library that can be read",
			library ? library : "");
		return ESPANK_ERROR;
	}
	r = preload(spank, library);
	r = r ? r : name_job(spank);
	for (uint32_t k = 0; !r && (name = td_slurm_spec_variable(&spec, k, value)); k++)
		r = set(spank, name, value);
	if (!r && socket)
		r = set(spank, "TANDEM_SOCKET", socket);
	if (!r && tandem)
		r = choose_gpus(spank, tandem, socket);
	return r;
}
