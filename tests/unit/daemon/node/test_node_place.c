/*
 * The GPUs that a job is given, by a node with fake processes. GPU n has the UUID of bytes n + 1,
 * as in fake_node.h.
 */
#include "daemon/node/gpus.h"
#include "test.h"

#include "unit/daemon/fake_node.h"

static struct world w;

static void begin(void)
{
	world_init(&w);
}

/* The last answer, as digits, and whether the messages were valid. */
static char given[TD_GPU_MAX + 1];

static int ask(unsigned fake, uint32_t count, const char *candidates)
{
	struct fake *f = &w.fakes[fake];
	int r = 0;

	f->placed_count = 0;
	for (uint32_t i = 0; !r && candidates[i]; i++) {
		struct td_msg msg = {.type = TD_MSG_TYPE_place};

		msg.place.count = count;
		msg.place.index = i;
		msg.place.candidates = (uint32_t)strlen(candidates);
		memset(msg.place.gpu, candidates[i] - '0' + 1, 16);
		r = say(&w, f, &msg);
	}
	for (uint32_t i = 0; i < f->placed_count; i++)
		given[i] = (char)('0' + f->placed[i] - 1);
	given[f->placed_count] = 0;
	return r;
}

/* A new job of that name that may use any of the candidates. */
static const char *any_of(unsigned fake, const char *job, const char *candidates)
{
	fake_hello(&w, &w.fakes[fake], job, TD_BACKEND_PLAIN, false);
	return ask(fake, 1, candidates) ? "?" : given;
}

static void limit(const char *job, const char *mem)
{
	CHECK_EQ(
		td_node_set_job(&w.node, td_identity_local(1000), job, "mem", mem, w.now, NULL), 0);
}

static struct td_nvml_gpu listed(uint32_t index, uint64_t total, uint64_t used)
{
	struct td_nvml_gpu gpu = {.index = index,
		.known = TD_GPU_KNOWS_MEMORY | TD_GPU_KNOWS_UTILISATION,
		.total_bytes = total,
		.used_bytes = used};

	memset(gpu.uuid, (int)index + 1, sizeof(gpu.uuid));
	return gpu;
}

TEST(programs_that_start_together_spread)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	char where[9] = "";

	begin();
	for (unsigned i = 0; i < 8; i++)
		strcat(where, any_of(i, names[i], "01"));
	CHECK_STR(where, "01010101");
	CHECK_EQ(w.events[TD_EVENT_PLACED], 8);
	for (unsigned i = 0; i < 8; i++) {
		fake_attach(&w, &w.fakes[i], 0, (uint8_t)(where[i] - '0'), 16 * MIB);
		fake_want(&w, &w.fakes[i]);
	}
	settle(&w);
	CHECK(within_capacity(&w));
	/* one leaves: the next one takes its place */
	fake_dies(&w, &w.fakes[3]);
	CHECK_STR(any_of(3, "i", "01"), "1");
}

TEST(the_order_of_the_candidates_breaks_ties_and_is_that_of_the_answer)
{
	begin();
	CHECK_STR(any_of(0, "a", "210"), "2");
	CHECK_STR(any_of(1, "b", "210"), "1");
	fake_hello(&w, &w.fakes[2], "c", TD_BACKEND_PLAIN, false);
	CHECK_EQ(ask(2, 2, "210"), 0); /* 0 is the least loaded; of 2 and 1 the first */
	CHECK_STR(given, "20");
}

TEST(a_jobs_processes_see_the_same_gpus)
{
	begin();
	CHECK_STR(any_of(0, "a", "01"), "0");
	CHECK_STR(any_of(1, "a", "01"), "0");
	CHECK_STR(any_of(2, "b", "01"), "1");
	/* also those that ask for something else; and as long as one is there */
	CHECK_STR(any_of(3, "a", "12"), "0");
	fake_dies(&w, &w.fakes[0]);
	fake_dies(&w, &w.fakes[1]);
	CHECK_STR(any_of(0, "a", "12"), "0");
	fake_dies(&w, &w.fakes[0]);
	fake_dies(&w, &w.fakes[3]);
	CHECK_STR(any_of(0, "a", "12"), "2"); /* b is on 1 */
}

TEST(a_job_is_found_again_by_what_its_processes_say)
{
	begin();
	fake_hello(&w, &w.fakes[0], "a", TD_BACKEND_PLAIN, true);
	CHECK_EQ(ask(0, 1, "1"), 0);
	CHECK_STR(given, "1");
	CHECK_EQ(w.events[TD_EVENT_PLACED], 0); /* no choice was made */
	CHECK_STR(any_of(1, "a", "012"), "1");
	CHECK_STR(any_of(2, "b", "10"), "0");
}

TEST(memory_goes_before_load)
{
	const struct td_nvml_gpu gpus[] = {listed(0, 64 * MIB, 0), listed(1, 64 * MIB, 0)};

	begin();
	td_gpus_seen(&w.node, gpus, 2, w.now);
	CHECK_STR(any_of(0, "large", "01"), "0");
	fake_attach(&w, &w.fakes[0], 0, 0, 40 * MIB);
	CHECK_STR(any_of(1, "b", "1"), "1");
	CHECK_STR(any_of(2, "c", "1"), "1");
	/* 0 has one job, 1 has two: what needs little goes to 0, what would fill it up does not */
	fake_hello(&w, &w.fakes[3], "much", TD_BACKEND_PLAIN, false);
	limit("much", "30m");
	CHECK_EQ(ask(3, 1, "01"), 0);
	CHECK_STR(given, "1");
	CHECK_STR(any_of(4, "little", "01"), "0");
	/* where it fits nowhere, the least loaded */
	fake_hello(&w, &w.fakes[5], "all", TD_BACKEND_PLAIN, false);
	limit("all", "63m");
	CHECK_EQ(ask(5, 1, "01"), 0);
	CHECK_STR(given, "0");
}

TEST(a_limit_counts_before_it_is_used)
{
	const struct td_nvml_gpu gpus[] = {listed(0, 64 * MIB, 0), listed(1, 64 * MIB, 0)};

	begin();
	td_gpus_seen(&w.node, gpus, 2, w.now);
	CHECK_STR(any_of(0, "a", "0"), "0");
	limit("a", "40m");
	CHECK_STR(any_of(1, "b", "1"), "1");
	CHECK_STR(any_of(2, "c", "1"), "1");
	fake_hello(&w, &w.fakes[3], "d", TD_BACKEND_PLAIN, false);
	limit("d", "50%");
	CHECK_EQ(ask(3, 1, "01"), 0);
	CHECK_STR(given, "1");
}

TEST(what_is_a_share_of_a_large_gpu_may_be_all_of_a_small_one)
{
	const struct td_nvml_gpu gpus[] = {listed(0, 16 * MIB, 0), listed(1, 64 * MIB, 0)};

	begin();
	td_gpus_seen(&w.node, gpus, 2, w.now);
	CHECK_STR(any_of(0, "b", "1"), "1");
	fake_hello(&w, &w.fakes[1], "c", TD_BACKEND_PLAIN, false);
	limit("c", "15m");
	CHECK_EQ(ask(1, 1, "01"), 0);
	CHECK_STR(given, "1");
}

TEST(a_duty_makes_a_job_lighter)
{
	begin();
	CHECK_STR(any_of(0, "a", "0"), "0");
	CHECK_STR(any_of(1, "b", "1"), "1");
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "b", "duty", "30%", w.now, NULL),
		0);
	CHECK_STR(any_of(2, "c", "01"), "1");
	/* a job counts for its processes */
	fake_attach(&w, &w.fakes[0], 0, 0, MIB);
	fake_hello(&w, &w.fakes[3], "a", TD_BACKEND_PLAIN, false);
	fake_attach(&w, &w.fakes[3], 0, 0, MIB);
	CHECK_STR(any_of(4, "d", "01"), "1");
}

TEST(what_nvml_knows_of_others_counts)
{
	struct td_nvml_gpu gpus[] = {
		listed(0, 64 * MIB, 0), listed(1, 64 * MIB, 0), listed(2, 64 * MIB, 60 * MIB)};

	begin();
	gpus[0].utilisation_ppm = 800000;
	td_gpus_seen(&w.node, gpus, 3, w.now);
	CHECK_STR(any_of(0, "a", "012"), "1");
	fake_dies(&w, &w.fakes[0]);
	gpus[1].lost = true;
	td_gpus_seen(&w.node, gpus, 3, w.now);
	fake_hello(&w, &w.fakes[0], "a", TD_BACKEND_PLAIN, false);
	CHECK_EQ(ask(0, 2, "012"), 0);
	CHECK_STR(given, "02");
	fake_dies(&w, &w.fakes[0]);
	/* where there is no room by what NVML says, though nobody of ours is there */
	gpus[1].lost = false;
	td_gpus_seen(&w.node, gpus, 3, w.now);
	fake_hello(&w, &w.fakes[0], "a", TD_BACKEND_PLAIN, false);
	limit("a", "50%");
	CHECK_EQ(ask(0, 2, "210"), 0);
	CHECK_STR(given, "10");
	fake_dies(&w, &w.fakes[0]);
	gpus[1].lost = true;
	gpus[0].mig = true;
	td_gpus_seen(&w.node, gpus, 3, w.now);
	CHECK_STR(any_of(0, "a", "012"), "2");
}

TEST(a_gpu_of_another_daemon_is_the_last_resort)
{
	begin();
	fake_hello(&w, &w.fakes[9], "z", TD_BACKEND_PLAIN, false);
	fake_attach(&w, &w.fakes[9], 0, 0, MIB);
	fake_dies(&w, &w.fakes[9]); /* the node knows GPU 0 now */
	w.foreign = 0;
	CHECK_STR(any_of(0, "a", "01"), "1");
	CHECK_STR(any_of(1, "b", "01"), "1");
	CHECK_STR(any_of(2, "c", "0"), "0");
	CHECK_EQ(w.claims, 0); /* asked about, not kept */
}

TEST(questions_that_make_no_sense_cost_the_connection)
{
	static const struct {
		uint32_t count, index, candidates;
	} bad[] = {{0, 0, 1}, {2, 0, 1}, {1, 1, 1}, {1, 0, 0}, {1, 0, TD_GPU_MAX + 1}, {1, 1, 3}};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct td_msg msg = {.type = TD_MSG_TYPE_place};

		begin();
		fake_hello(&w, &w.fakes[0], "a", TD_BACKEND_PLAIN, false);
		msg.place.count = bad[i].count;
		msg.place.index = bad[i].index;
		msg.place.candidates = bad[i].candidates;
		CHECK_EQ(say(&w, &w.fakes[0], &msg), -EPROTO);
		CHECK_EQ(w.fakes[0].placed_count, 0);
	}
}

TEST(settings_that_make_no_sense_are_events_and_quoted_and_not_without_end)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_rejected};

	begin();
	fake_hello(&w, &w.fakes[0], "a", TD_BACKEND_PLAIN, false);
	strcpy(msg.rejected.setting, "NVIDIA_GPU_MEMORY_LIMIT=gar\033bage");
	CHECK_EQ(say(&w, &w.fakes[0], &msg), 0);
	CHECK_EQ(w.events[TD_EVENT_REJECTED], 1);
	CHECK(strstr(
		td_events_get(&w.node.events, 1)->detail, "NVIDIA_GPU_MEMORY_LIMIT=gar?bage "));
	CHECK_EQ(td_events_get(&w.node.events, 1)->pid, 100);
	strcpy(msg.rejected.setting, "TANDEM_IDLE=soon");
	for (unsigned i = 0; i < 100; i++)
		CHECK_EQ(say(&w, &w.fakes[0], &msg), 0);
	CHECK_EQ(w.events[TD_EVENT_REJECTED], 16);
	CHECK(strstr(td_events_get(&w.node.events, 2)->detail, "TANDEM_IDLE=soon "));
}

TEST(explain_tells_what_a_job_was_given)
{
	const struct td_nvml_gpu gpus[] = {listed(0, 64 * MIB, 0), listed(1, 64 * MIB, 0)};

	begin();
	td_gpus_seen(&w.node, gpus, 2, w.now);
	fake_hello(&w, &w.fakes[0], "a", TD_BACKEND_PLAIN, false);
	CHECK_EQ(ask(0, 2, "015"), 0);
	CHECK(strstr(explained(&w, &w.fakes[0]), "Its job was given GPU 0, 1."));
	fake_hello(&w, &w.fakes[1], "b", TD_BACKEND_PLAIN, false);
	CHECK_EQ(ask(1, 1, "5"), 0);
	CHECK(strstr(explained(&w, &w.fakes[1]), "given GPU GPU-06060606-"));
}

/* GPU 1 has MPS, GPU 0 has none. */
static bool mps_of(void *arg, const uint8_t *uuid, struct td_mps_seen *ret)
{
	(void)arg;
	*ret = (struct td_mps_seen){.state = uuid[0] == 2 ? TD_MPS_ON : TD_MPS_OFF,
		.directory = uuid[0] == 2 ? "/run/mps-1" : NULL};
	return true;
}

TEST(a_program_of_one_gpu_is_told_how_to_use_its_mps)
{
	struct td_msg_hello hello = {.class = TD_CLASS_ONLINE, .weight = 1, .abi = TD_PAGES_ABI};
	uint32_t at;

	begin();
	w.node.io.mps = mps_of;
	CHECK_STR(any_of(0, "a", "1"), "1");
	CHECK_STR(w.fakes[0].answer.mps, "/run/mps-1");
	CHECK_EQ(w.fakes[0].answer.sm_share_ppm, 0); /* nobody has used the GPU yet */
	fake_attach(&w, &w.fakes[0], 0, 1, MIB);
	at = td_process_client(w.fakes[0].process)->gpu;
	w.node.verdicts[at].sm_share_ppm = 300000;
	CHECK_STR(any_of(1, "b", "1"), "1");
	CHECK_STR(w.fakes[1].answer.mps, "/run/mps-1");
	CHECK_EQ(w.fakes[1].answer.sm_share_ppm, 300000);
	/* A share is for besteffort programs. */
	memset(&w.fakes[2], 0, sizeof(w.fakes[2]));
	strcpy(hello.job, "c");
	w.fakes[2].process =
		td_node_hello(&w.node, &w.fakes[2], 102, td_identity_local(0), &hello, w.now);
	w.node.verdicts[at].sm_share_ppm = 300000;
	CHECK_EQ(ask(2, 1, "1"), 0);
	CHECK_STR(w.fakes[2].answer.mps, "/run/mps-1");
	CHECK_EQ(w.fakes[2].answer.sm_share_ppm, 0);
	/* Without MPS, or with several GPUs, there is nothing to tell. */
	CHECK_STR(any_of(3, "d", "0"), "0");
	CHECK_STR(w.fakes[3].answer.mps, "");
	fake_hello(&w, &w.fakes[4], "e", TD_BACKEND_PLAIN, false);
	CHECK_EQ(ask(4, 2, "01"), 0);
	CHECK_STR(given, "01");
	CHECK_STR(w.fakes[4].answer.mps, "");
	CHECK_EQ(w.fakes[4].answer.count, 2);
	CHECK_EQ(w.fakes[4].answer.index, 1);
}
