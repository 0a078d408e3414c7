/* The job_submit plugin of a cluster with tandem-sched, in a slurmctld that is not there. */
#include "test.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <unistd.h>

struct job_record;

char *slurm_xstrdup(const char *text);
void slurm_xfree_ptr(void *pointer);
void schedule(bool full_queue);
int job_submit(job_desc_msg_t *job, uint32_t uid, char **ret_message);
int job_modify(job_desc_msg_t *job, struct job_record *record, uint32_t uid, char **ret_message);

static job_desc_msg_t job;
static char *message;
static uint32_t looks;

char *slurm_xstrdup(const char *text)
{
	return strdup(text);
}

void slurm_xfree_ptr(void *pointer)
{
	free(pointer);
}

void schedule(bool full_queue)
{
	CHECK(!full_queue);
	looks++;
}

static void begin(void)
{
	free(message);
	message = NULL;
	looks = 0;
	job = (job_desc_msg_t){.min_nodes = NO_VAL};
}

static void end(void)
{
	free(job.admin_comment);
	free(job.tres_per_node);
	begin();
}

TEST(a_job_is_counted_and_held)
{
	char option[] = "SPANK_TANDEM=0.5,mem=8Gi", *options[] = {option};

	begin();
	job.spank_job_env = options;
	job.spank_job_env_size = 1;
	job.admin_comment = strdup("tandem=9 epoch=7 on=node1:0");
	job.priority = NO_VAL;
	CHECK_EQ(job_submit(&job, 1000, &message), SLURM_SUCCESS);
	CHECK_STR(job.tres_per_node, "gres:tandem:50");
	CHECK_STR(job.admin_comment, "tandem=0.5,mem=8Gi epoch=0 why: it has just come");
	CHECK_EQ(job.priority, 0);
	end();
}

/* With it a job would look as if tandem-sched had placed it. */
TEST(nobody_brings_a_comment_of_tandem_sched)
{
	begin();
	job.admin_comment = strdup("tandem=0.5 epoch=1 on=node1:0");
	CHECK_EQ(job_submit(&job, 1000, &message), ESLURM_INVALID_GRES);
	CHECK_STR(message, "--tandem: the comment tandem=... is tandem-sched's own");
	end();
	job.admin_comment = strdup("somebody's");
	CHECK_EQ(job_submit(&job, 1000, &message), SLURM_SUCCESS);
	CHECK_STR(job.admin_comment, "somebody's");
	end();
}

TEST(a_share_does_not_change)
{
	begin();
	job.tres_per_node = strdup("gres:tandem:1");
	CHECK_EQ(job_modify(&job, NULL, 1000, &message), ESLURM_INVALID_GRES);
	CHECK_STR(message, "--tandem: a job's share does not change: submit it again");
	end();
	job.tres_per_node = strdup("gres:gpu:1");
	CHECK_EQ(job_modify(&job, NULL, 1000, &message), SLURM_SUCCESS);
	end();
}

static uint32_t looks_after(const char *comment, uint32_t uid)
{
	uint32_t n;

	begin();
	job.admin_comment = comment ? strdup(comment) : NULL;
	CHECK_EQ(job_modify(&job, NULL, uid, &message), SLURM_SUCCESS);
	n = looks;
	end();
	return n;
}

TEST(slurmctld_looks_at_a_placed_job_at_once)
{
	const char *placed = "tandem=0.5 epoch=1 on=node1:0 run=0 guest";

	CHECK_EQ(looks_after(placed, 0), 1);
	CHECK_EQ(looks_after(placed, getuid()), 1);
	CHECK_EQ(looks_after(placed, getuid() + 1000), 0);
	CHECK_EQ(looks_after("tandem=0.5 epoch=1 why: it waits", 0), 0);
	CHECK_EQ(looks_after("somebody's on=node1", 0), 0);
	CHECK_EQ(looks_after(NULL, 0), 0);
}
