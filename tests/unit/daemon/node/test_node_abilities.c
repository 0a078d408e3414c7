/* A node's abilities are found out, and a policy runs once those that it needs exist. */
#include "unit/daemon/node_world.h"

#include "daemon/node/abilities.h"
#include "daemon/node/gpus.h"
#include "daemon/node/hangs.h"
#include "proto/orders.h"

static uint64_t throttle; /* the bits of NVML */

static void nvml_says(uint32_t known)
{
	struct td_nvml_gpu listed = {.known = known,
		.utilisation_ppm = 300000,
		.sm_mhz = 1500,
		.sm_max_mhz = 1980,
		.throttle = throttle,
		.total_bytes = 64 * MIB};

	memset(listed.uuid, 1, 16);
	td_gpus_seen(&w.node, &listed, 1, w.now);
	(void)td_node_step(&w.node, w.now);
}

static unsigned count_bits(uint32_t bits)
{
	return (unsigned)__builtin_popcount(bits);
}

TEST(without_nvml_it_is_what_libraries_can_do)
{
	begin();
	td_abilities_look(&w.node);
	CHECK_EQ(w.node.options.has, TD_HAS(STEPS) | TD_HAS(DUTY) | TD_HAS(SERVICE) |
					     TD_HAS(BATCH) | TD_HAS(HOST_MEMORY) |
					     TD_HAS(EVICTION) | TD_HAS(RESTART) |
					     TD_HAS(SM_ACTIVITY) | TD_HAS(CORES));
	CHECK_EQ(count_bits(w.node.options.has), 9);
	w.node.options.meter = TD_METER_OFF;
	td_abilities_look(&w.node);
	CHECK_EQ(count_bits(w.node.options.has), 7);
}

TEST(what_nvml_tells_of_each_gpu_is_an_ability)
{
	begin();
	(void)spilling_program(0, "a", MIB);
	nvml_says(TD_GPU_KNOWS_UTILISATION | TD_GPU_KNOWS_CLOCK);
	CHECK_EQ(count_bits(w.node.options.has), 11);
	CHECK(w.node.options.has & TD_HAS(UTILISATION) && w.node.options.has & TD_HAS(CLOCK));
	CHECK_EQ(w.node.gpu_views[0].utilisation_ppm, 300000);
	CHECK_EQ(w.node.gpu_views[0].sm_clock_mhz, 1500);
	CHECK_EQ(w.node.gpu_views[0].known, TD_HAS(UTILISATION) | TD_HAS(CLOCK));
	nvml_says(0);
	CHECK_EQ(count_bits(w.node.options.has), 9);
	CHECK_EQ(w.node.gpu_views[0].known, 0);
}

TEST(the_clock_of_an_idle_gpu_counts_as_its_highest)
{
	uint32_t known = TD_GPU_KNOWS_CLOCK | TD_GPU_KNOWS_THROTTLE;

	begin();
	(void)spilling_program(0, "a", MIB);
	throttle = 0x1; /* idle */
	nvml_says(known);
	CHECK_EQ(w.node.gpu_views[0].known, TD_HAS(CLOCK));
	CHECK_EQ(w.node.gpu_views[0].sm_clock_mhz, 1980);
	throttle = 0x1 | 0x20; /* and too hot */
	nvml_says(known);
	CHECK_EQ(w.node.gpu_views[0].sm_clock_mhz, 1500);
	throttle = 0;
	nvml_says(known);
	CHECK_EQ(w.node.gpu_views[0].sm_clock_mhz, 1500);
}

TEST(an_xid_is_nobodys_until_the_mps_server_is_known)
{
	struct td_nvml_gpu listed = {.xid = 31, .xid_pid = 4711};
	struct td_client *client;

	begin();
	(void)spilling_program(0, "a", MIB);
	client = td_client_at(w.node.clients.next);
	memcpy(listed.uuid, w.node.gpus[client->gpu].uuid, 16);
	/* Without clients there is no server. */
	CHECK_EQ(td_hangs_xid_of(&w.node, &listed, 0), TD_XID_OF_OTHER);
	client->mps = true;
	client->process->pid = 99;
	CHECK_EQ(td_hangs_xid_of(&w.node, &listed, 0), TD_XID_OF_UNKNOWN);
	CHECK_EQ(td_hangs_xid_of(&w.node, &listed, 4711), TD_XID_OF_MPS);
	CHECK_EQ(td_hangs_xid_of(&w.node, &listed, 4712), TD_XID_OF_OTHER);
	listed.xid_pid = 99;
	CHECK_EQ(td_hangs_xid_of(&w.node, &listed, 0), TD_XID_OF_MPS);
	CHECK_EQ(td_hangs_xid_of(&w.node, &listed, 4712), TD_XID_OF_MPS);
	listed.uuid[0] ^= 1;
	CHECK_EQ(td_hangs_xid_of(&w.node, &listed, 4712), TD_XID_OF_OTHER);
	listed.xid_pid = 0;
	CHECK_EQ(td_hangs_xid_of(&w.node, &listed, 4712), TD_XID_OF_UNKNOWN);
}

static struct td_mps_seen seen;
static bool somebody_looks;

static bool look_at_mps(void *arg, const uint8_t *uuid, struct td_mps_seen *ret)
{
	(void)arg;
	(void)uuid;
	*ret = seen;
	return somebody_looks;
}

TEST(mps_gives_health_and_sm_shares)
{
	const uint32_t both = TD_HAS(HEALTH) | TD_HAS(SM_SHARE);

	begin();
	w.node.io.mps = look_at_mps;
	(void)spilling_program(0, "a", MIB);
	somebody_looks = true;
	seen = (struct td_mps_seen){.state = TD_MPS_OFF};
	(void)td_node_step(&w.node, w.now);
	/* Without NVML nobody tells of Xid errors. */
	CHECK_EQ(w.node.options.has & both, 0);
	nvml_says(TD_GPU_KNOWS_UTILISATION);
	CHECK_EQ(w.node.options.has & both, TD_HAS(HEALTH));
	seen = (struct td_mps_seen){
		.state = TD_MPS_ON, .can_serve = true, .hangs = true, .started_ns = w.now};
	(void)td_node_step(&w.node, w.now);
	CHECK_EQ(w.node.options.has & both, both);
	CHECK(w.node.gpu_views[0].known & TD_HAS(HEALTH) && w.node.gpu_views[0].hangs);
	CHECK_EQ(w.node.gpu_views[0].mps, TD_MPS_ON);
	CHECK_EQ(w.node.gpu_views[0].mps_started_ns, w.now);
	somebody_looks = false;
	(void)td_node_step(&w.node, w.now);
	CHECK_EQ(w.node.options.has & both, 0);
	CHECK_EQ(w.node.gpu_views[0].mps, TD_MPS_UNKNOWN);
}

TEST(a_driver_that_cannot_map_host_memory_takes_an_ability_away)
{
	begin();
	(void)program(0, "a", MIB);
	td_abilities_look(&w.node);
	CHECK(!(w.node.options.has & TD_HAS(HOST_MEMORY)));
	begin();
	(void)spilling_program(0, "a", MIB);
	td_abilities_look(&w.node);
	CHECK(w.node.options.has & TD_HAS(HOST_MEMORY));
}

TEST(a_client_has_what_its_backend_can_do)
{
	struct fake *a, *b;

	begin();
	a = spilling_program(0, "a", MIB);
	b = plain_program(1, "b", MIB);
	(void)td_node_step(&w.node, w.now);
	CHECK_EQ(w.node.shown_count, 2);
	CHECK(w.node.shown[0]->process == a->process && w.node.shown[1]->process == b->process);
	CHECK_EQ(w.node.views[0].has,
		TD_HAS(STEPS) | TD_HAS(DUTY) | TD_HAS(HOST_MEMORY) | TD_HAS(EVICTION));
	CHECK_EQ(w.node.views[1].has, TD_HAS(STEPS) | TD_HAS(DUTY) | TD_HAS(EVICTION));
	/* The daemon may not end it, and its library does not. */
	w.node.owner = 7;
	b->process->can = 0;
	(void)td_node_step(&w.node, w.now);
	CHECK_EQ(w.node.views[1].has, TD_HAS(STEPS) | TD_HAS(DUTY));
	b->process->can = TD_CAN_LEAVE;
	(void)td_node_step(&w.node, w.now);
	CHECK_EQ(w.node.views[1].has, TD_HAS(STEPS) | TD_HAS(DUTY) | TD_HAS(EVICTION));
	struct td_msg msg = {.type = TD_MSG_TYPE_service, .service = {.name = "api"}};

	CHECK_EQ(td_node_message(&w.node, b->process, &msg, w.now), 0);
	(void)td_node_step(&w.node, w.now);
	CHECK_EQ(w.node.views[1].has,
		TD_HAS(STEPS) | TD_HAS(DUTY) | TD_HAS(SERVICE) | TD_HAS(EVICTION));
	/* It has asked for a batch. */
	b->process->service->batch = 8;
	(void)td_node_step(&w.node, w.now);
	CHECK_EQ(w.node.views[1].has,
		TD_HAS(STEPS) | TD_HAS(DUTY) | TD_HAS(SERVICE) | TD_HAS(BATCH) | TD_HAS(EVICTION));
	/* A batch that was set by hand is its own, up to what it can do. */
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "b", "batch", "32", w.now, NULL),
		0);
	(void)td_node_step(&w.node, w.now);
	CHECK_EQ(b->pacing.batch, 32);
	b->process->service->batch_max = 24;
	w.now++;
	(void)td_node_step(&w.node, w.now);
	CHECK_EQ(b->pacing.batch, 24);
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "b", "batch", "0", w.now, NULL),
		-EINVAL);
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "b", "batch", "none", w.now, NULL),
		0);
	(void)td_node_step(&w.node, w.now);
	CHECK_EQ(b->pacing.batch, 0);
	msg.service.name[0] = 0;
	CHECK(td_node_message(&w.node, a->process, &msg, w.now) < 0);
}

TEST(a_job_can_be_restarted_while_a_supervisor_of_it_is_there)
{
	struct td_msg_supervise msg = {.job = "b", .can = TD_SUPERVISOR_RESTARTS};
	struct td_supervisor *supervisor = NULL;

	begin();
	CHECK_EQ(td_supervisors_say(
			 &w.node, &supervisor, &w, 7, td_identity_local(1000), &msg, w.now, NULL),
		0);
	(void)program(0, "a", MIB);
	(void)program(1, "b", MIB);
	(void)td_node_step(&w.node, w.now);
	CHECK(!(w.node.views[0].has & TD_HAS(RESTART)));
	CHECK(w.node.views[1].has & TD_HAS(RESTART));
	td_supervisors_gone(&w.node, supervisor);
	(void)td_node_step(&w.node, w.now);
	CHECK(!(w.node.views[1].has & TD_HAS(RESTART)));
}

TEST(a_supervisor_that_starts_shadows_gives_that_ability_to_its_own_job)
{
	struct td_msg_supervise msg = {.job = "a", .can = TD_SUPERVISOR_SHADOWS};
	struct td_supervisor *supervisor = NULL;

	begin();
	CHECK_EQ(td_supervisors_say(
			 &w.node, &supervisor, &w, 7, td_identity_local(1000), &msg, w.now, NULL),
		0);
	(void)program(0, "a", MIB);
	(void)program(1, "b", MIB);
	(void)td_node_step(&w.node, w.now);
	CHECK(w.node.views[0].has & TD_HAS(SHADOW) && !(w.node.views[1].has & TD_HAS(SHADOW)));
	td_supervisors_gone(&w.node, supervisor);
	(void)td_node_step(&w.node, w.now);
	CHECK(!(w.node.views[0].has & TD_HAS(SHADOW)));
}

TEST(what_anybodys_supervisor_says_gives_the_node_nothing_and_no_policy_its_turn)
{
	static struct td_policy needs_shadow;
	struct td_msg_supervise msg = {.job = "theirs", .can = TD_SUPERVISOR_ALL};
	struct td_supervisor *supervisor = NULL;
	uint32_t before;

	begin();
	needs_shadow = *td_policy_find("nvshare");
	needs_shadow.name = "needs_shadow";
	needs_shadow.needs = TD_HAS(SHADOW);
	w.node.options.policy = &needs_shadow;
	td_node_options_changed(&w.node, w.now, "policy");
	before = w.node.options.has;
	CHECK_EQ(td_supervisors_say(
			 &w.node, &supervisor, &w, 7, td_identity_local(1001), &msg, w.now, NULL),
		0);
	(void)program(0, "a", MIB);
	(void)program(1, "theirs", MIB);
	(void)td_node_step(&w.node, w.now);
	CHECK_STR(w.node.policy->name, "tandem");
	CHECK(w.node.options.has & TD_HAS(RESTART));
	CHECK_EQ(w.node.options.has & ~TD_HAS(HOST_MEMORY), before & ~TD_HAS(HOST_MEMORY));
	CHECK(!((w.node.views[0].has | w.node.views[1].has) & TD_HAS(SHADOW)));
	td_supervisors_gone(&w.node, supervisor);
	(void)td_node_step(&w.node, w.now);
	CHECK_EQ(w.node.options.has & ~TD_HAS(HOST_MEMORY), before & ~TD_HAS(HOST_MEMORY));
}

TEST(a_policy_that_waits_decides_when_what_it_needs_is_there)
{
	static struct td_policy needs_clock;

	begin();
	needs_clock = *td_policy_find("nvshare");
	needs_clock.name = "needs_clock";
	needs_clock.needs = TD_HAS(CLOCK);
	w.node.options.policy = &needs_clock;
	td_node_options_changed(&w.node, w.now, "policy");
	CHECK_STR(w.node.policy->name, "tandem");
	nvml_says(TD_GPU_KNOWS_UTILISATION);
	CHECK_STR(w.node.policy->name, "tandem");
	nvml_says(TD_GPU_KNOWS_CLOCK);
	CHECK_STR(w.node.policy->name, "needs_clock");
	/* The policy goes on deciding. */
	nvml_says(0);
	CHECK_STR(w.node.policy->name, "needs_clock");
}

TEST(what_is_lacking_is_a_sentence)
{
	char text[256];

	CHECK_STR(td_abilities_sentence(TD_ABILITY_BIT_CLOCK, text, sizeof(text)),
		"This node cannot see the SM clock: NVML does not report it.");
}
