/* Programs of containers: root of one is a user like others, and no other container's root. */
#include "test.h"

#include "daemon/execute/actions.h"
#include "daemon/model/supervisors.h"
#include "daemon/model/tenants.h"
#include "proto/orders.h"
#include "unit/daemon/fake_node.h"

static const struct td_identity root = {0, TD_SPACE_OWN}, first = {0, 1}, second = {0, 2},
				unseen = {0, TD_SPACE_UNKNOWN};
static struct world w;
static struct td_err err;

static struct fake *comes(int i, struct td_identity who, const char *job)
{
	struct td_msg_hello hello = {
		.class = TD_CLASS_BESTEFFORT, .weight = 1, .abi = TD_PAGES_ABI};
	struct fake *f = &w.fakes[i];

	memset(f, 0, sizeof(*f));
	strcpy(hello.job, job);
	strcpy(hello.name, job);
	f->process = td_node_hello(&w.node, f, 100 + i, who, &hello, w.now);
	fake_attach(&w, f, 0, 0, MIB);
	settle(&w);
	return f;
}

static int set(struct td_identity who, const char *job, const char *weight)
{
	return td_node_set_job(&w.node, who, job, "weight", weight, w.now, &err);
}

static int evict(struct td_identity who, const char *job)
{
	struct td_act *acts[TD_ACTS_MAX];
	uint32_t count;

	return td_actions_order(&w.node, who, job, TD_ACTION_EVICT, "", w.now, acts, &count, &err);
}

TEST(a_job_has_processes_of_one_container)
{
	const struct fake *a, *b, *again, *here;

	world_init(&w);
	a = comes(0, first, "train");
	b = comes(1, second, "train");
	again = comes(2, first, "train");
	here = comes(3, root, "train");
	CHECK(a->process->job == again->process->job);
	CHECK(a->process->job != b->process->job);
	CHECK(a->process->job != here->process->job);
	CHECK_EQ(w.node.tenant_count, 3);
}

TEST(root_of_a_container_changes_its_own_jobs_alone)
{
	const struct fake *a, *b;

	world_init(&w);
	a = comes(0, first, "train");
	b = comes(1, second, "train");
	CHECK_EQ(set(first, "train", "3"), 0);
	CHECK_EQ(a->process->job->settings.weight, 3);
	CHECK_EQ(b->process->job->settings.weight, 1);
	(void)comes(2, second, "theirs");
	CHECK(set(first, "theirs", "3") < 0);
	CHECK(evict(first, "theirs") < 0);
	CHECK_EQ(evict(first, "train"), 0);
	CHECK_EQ(set(root, "train", "5"), 0);
	CHECK_EQ(b->process->job->settings.weight, 5);
}

TEST(a_supervisor_has_jobs_of_its_container_alone)
{
	struct td_msg_supervise msg = {.can = TD_SUPERVISOR_ALL, .epoch = 1};
	struct td_supervisor *supervisor = NULL;
	const struct fake *a, *b;

	world_init(&w);
	a = comes(0, first, "train");
	b = comes(1, second, "train");
	strcpy(msg.job, "train");
	CHECK_EQ(td_supervisors_say(&w.node, &supervisor, &w, 7, first, &msg, w.now, &err), 0);
	CHECK_EQ(a->process->job->supervised, TD_SUPERVISOR_ALL);
	CHECK_EQ(b->process->job->supervised, 0);
}

TEST(only_root_of_the_node_is_unbounded)
{
	world_init(&w);
	CHECK(td_node_is_owner(&w.node, root));
	CHECK(!td_node_is_owner(&w.node, first));
	CHECK(!td_node_is_owner(&w.node, unseen));
}

TEST(who_cannot_be_seen_has_programs_and_no_rights)
{
	const struct fake *a, *b;

	world_init(&w);
	a = comes(0, unseen, "train");
	b = comes(1, unseen, "train");
	CHECK(a->process->job != b->process->job);
	CHECK_EQ(w.node.tenant_count, 1); /* his bounds are shared, and not his rights */
	CHECK(set(unseen, "train", "3") < 0);
	CHECK(evict(unseen, "train") < 0);
	CHECK_EQ(set(root, "train", "3"), 0);
}
