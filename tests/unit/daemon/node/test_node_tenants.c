/*
 * The default quota of a user's protected jobs where several users share a node (quota.gpus=auto).
 */
#include "test.h"

#include "base/time.h"
#include "daemon/node/gpus.h"
#include "daemon/node/tenant.h"
#include "unit/daemon/fake_node.h"

static struct world w;
static struct td_err err;

static struct fake *comes(int i, uid_t uid, enum td_class class, const char *mem)
{
	struct td_msg_hello hello = {.class = (uint8_t) class, .weight = 1, .abi = TD_PAGES_ABI};
	struct fake *f = &w.fakes[i];

	memset(f, 0, sizeof(*f));
	snprintf(hello.job, sizeof(hello.job), "job-%d", i);
	strcpy(hello.mem, mem);
	f->process = td_node_hello(&w.node, f, 100 + i, td_identity_local(uid), &hello, w.now);
	fake_attach(&w, f, 0, 0, MIB);
	settle(&w);
	return f;
}

static enum td_class class_of(const struct fake *f)
{
	return f->process->job->settings.class;
}

TEST(a_user_alone_is_not_bounded)
{
	world_init(&w);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(class_of(comes(i, 1000, TD_CLASS_ONLINE, "")), TD_CLASS_ONLINE);
	CHECK_EQ(td_tenant_check_new(&w.node, td_identity_local(1000), TD_CLASS_ONLINE, "", &err),
		0);
}

TEST(two_users_have_half_of_the_gpu_each)
{
	world_init(&w);
	struct fake *a = comes(0, 1000, TD_CLASS_ONLINE, "30%"),
		    *b = comes(1, 1001, TD_CLASS_GUARANTEED, "50%");

	CHECK_EQ(class_of(a), TD_CLASS_ONLINE);
	CHECK_EQ(class_of(b), TD_CLASS_GUARANTEED);
	CHECK_EQ(
		td_tenant_check_new(&w.node, td_identity_local(1000), TD_CLASS_ONLINE, "20%", &err),
		0);
	CHECK_EQ(
		td_tenant_check_new(&w.node, td_identity_local(1000), TD_CLASS_ONLINE, "21%", &err),
		-EDQUOT);
	CHECK(strstr(err.msg, "quota.gpus=auto: an equal part for each of the 2 users here"));
	CHECK_EQ(td_tenant_check_new(
			 &w.node, td_identity_local(1000), TD_CLASS_BESTEFFORT, "", &err),
		0);
	/* One that is yet to come counts, too. */
	CHECK_EQ(
		td_tenant_check_new(&w.node, td_identity_local(1002), TD_CLASS_ONLINE, "34%", &err),
		-EDQUOT);
	CHECK_EQ(class_of(comes(2, 1000, TD_CLASS_ONLINE, "")), TD_CLASS_BESTEFFORT);
}

TEST(who_was_there_first_keeps_his_part_and_no_more)
{
	world_init(&w);
	struct fake *first = comes(0, 1000, TD_CLASS_ONLINE, "50%"),
		    *second = comes(1, 1000, TD_CLASS_ONLINE, "50%"),
		    *other = comes(2, 1001, TD_CLASS_BESTEFFORT, "");

	CHECK_EQ(class_of(first), TD_CLASS_ONLINE);
	CHECK_EQ(class_of(second), TD_CLASS_BESTEFFORT);
	CHECK_EQ(second->process->job->settings.upgrade, 1 + TD_CLASS_ONLINE);
	/* It gets its class back a while after the other user has left. */
	fake_dies(&w, other);
	settle(&w);
	CHECK_EQ(class_of(second), TD_CLASS_BESTEFFORT);
	w.now += 61 * TD_NS_PER_S;
	settle(&w);
	CHECK_EQ(class_of(second), TD_CLASS_ONLINE);
}

TEST(short_programs_of_another_user_change_nothing_each_time)
{
	world_init(&w);
	struct fake *a = comes(0, 1000, TD_CLASS_ONLINE, "");
	uint64_t changes;

	fake_dies(&w, comes(1, 1001, TD_CLASS_BESTEFFORT, ""));
	settle(&w);
	CHECK_EQ(class_of(a), TD_CLASS_BESTEFFORT);
	changes = w.events[TD_EVENT_OPTION];
	for (int i = 0; i < 20; i++) {
		w.now += TD_NS_PER_S;
		fake_dies(&w, comes(1, 1001, TD_CLASS_BESTEFFORT, ""));
		settle(&w);
	}
	CHECK_EQ(w.events[TD_EVENT_OPTION], changes);
}

TEST(root_and_the_daemons_owner_are_not_bounded)
{
	world_init(&w);
	w.node.owner = 1000;
	(void)comes(0, 1001, TD_CLASS_BESTEFFORT, "");
	CHECK_EQ(class_of(comes(1, 1000, TD_CLASS_ONLINE, "")), TD_CLASS_ONLINE);
	CHECK_EQ(class_of(comes(2, 0, TD_CLASS_ONLINE, "")), TD_CLASS_ONLINE);
	CHECK_EQ(class_of(comes(3, 1001, TD_CLASS_ONLINE, "")), TD_CLASS_BESTEFFORT);
}

TEST(none_bounds_nobody_and_a_number_everybody)
{
	world_init(&w);
	CHECK_EQ(td_options_set(&w.node.options, "quota.gpus", "none", NULL), 0);
	(void)comes(0, 1001, TD_CLASS_BESTEFFORT, "");
	struct fake *a = comes(1, 1000, TD_CLASS_ONLINE, "");

	CHECK_EQ(class_of(a), TD_CLASS_ONLINE);
	/* A number takes nothing away. */
	CHECK_EQ(td_options_set(&w.node.options, "quota.gpus", "0.5", NULL), 0);
	settle(&w);
	CHECK_EQ(class_of(a), TD_CLASS_ONLINE);
}

TEST(gpus_that_are_there_count)
{
	struct td_nvml_gpu rows[4] = {0};

	world_init(&w);
	for (uint32_t i = 0; i < 4; i++) {
		rows[i].index = i;
		rows[i].total_bytes = 64 * MIB;
		memset(rows[i].uuid, (int)i + 1, 16);
	}
	td_gpus_seen(&w.node, rows, 4, w.now);
	(void)comes(0, 1001, TD_CLASS_BESTEFFORT, "");
	CHECK_EQ(class_of(comes(1, 1000, TD_CLASS_ONLINE, "")), TD_CLASS_ONLINE);
	CHECK_EQ(class_of(comes(2, 1000, TD_CLASS_ONLINE, "")), TD_CLASS_ONLINE);
	CHECK_EQ(class_of(comes(3, 1000, TD_CLASS_ONLINE, "")), TD_CLASS_BESTEFFORT);
}
