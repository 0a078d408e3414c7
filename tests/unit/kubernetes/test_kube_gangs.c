/* Gangs of pods, and the nodes that only some pods may use. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "kubernetes/sched/engine/gangs.h"
#include "kubernetes/sched/engine/pools.h"

static const struct td_kube_names names = {"tandem.dev/gpu", "tandem"};
static struct td_kube_cache cache;
static struct td_kube_pools pools;

static void begin(void)
{
	td_kube_pools_deinit(&pools);
	td_kube_cache_deinit(&cache);
	CHECK_EQ(td_kube_cache_init(&cache, &names), 0);
}

static void feed(void (*take)(void *, const json_t *, bool), bool is_deleted, const char *text)
{
	json_t *root = json_loads(text, 0, NULL);

	CHECK(root);
	take(&cache, root, is_deleted);
	json_decref(root);
}

/* more: "" or members of the spec. */
static void pod(const char *uid, unsigned size, unsigned slices, const char *more)
{
	char text[1024];

	snprintf(text, sizeof(text),
		"{\"metadata\":{\"uid\":\"%s\",\"namespace\":\"ns\",\"name\":\"%s\","
		"\"annotations\":{\"tandem.dev/gang\":\"g\",\"tandem.dev/gang-size\":\"%u\"},"
		"\"ownerReferences\":[{\"uid\":\"o\",\"controller\":true}]},\"spec\":{"
		"\"schedulerName\":\"tandem\",\"containers\":[{\"resources\":{\"limits\":{"
		"\"tandem.dev/gpu\":\"%u\"}}}]%s}}",
		uid, uid, size, slices, more);
	feed(td_kube_cache_pod, false, text);
}

static struct td_kube_entry *entry_of(const char *uid)
{
	return &cache.pod[td_name_table_find(&cache.pods, uid)];
}

static void bind_to(const char *uid, const char *node, uint32_t gpu, uint64_t epoch)
{
	struct td_kube_pod *its = &entry_of(uid)->pod;

	strcpy(its->node, node);
	its->gpu[0] = gpu;
	its->gpus = 1;
	its->epoch = epoch;
	its->is_placed = true;
}

static const char *why(const char *uid)
{
	static char text[512];

	td_kube_gang_why(&cache, entry_of(uid), text, sizeof(text));
	return text;
}

TEST(pods_of_one_name_are_one_job)
{
	const struct td_kube_gang *gang;

	begin();
	pod("u1", 3, 50, "");
	pod("u2", 3, 50, "");
	td_kube_gangs_count(&cache, 1);
	gang = td_kube_gang_of(&cache, entry_of("u1"));
	CHECK_EQ(gang->waits, 2);
	CHECK_STR(gang->job, "u1");
	CHECK_STR(entry_of("u2")->job, "u1");
	CHECK_STR(why("u2"), "its gang g waits for more pods: 2 of 3 are there");
	pod("odd", 3, 60, "");
	pod("u3", 3, 50, "");
	pod("u4", 3, 50, "");
	td_kube_gangs_count(&cache, 2);
	CHECK_EQ(gang->waits, 3);
	CHECK_STR(why("u3"), "");
	CHECK(strstr(why("odd"), "another share"));
	CHECK_STR(why("u4"), "its gang g has its 3 pods already");
	CHECK_STR(entry_of("u4")->job, "");
}

TEST(a_pod_that_leaves_its_gang_has_a_job_of_its_own)
{
	begin();
	pod("u1", 2, 100, "");
	pod("u2", 2, 100, "");
	td_kube_gangs_count(&cache, 1);
	CHECK_STR(entry_of("u2")->job, "u1");
	feed(td_kube_cache_pod, false,
		"{\"metadata\":{\"uid\":\"u2\",\"namespace\":\"ns\",\"name\":\"u2\"},\"spec\":{"
		"\"schedulerName\":\"tandem\",\"containers\":[{\"resources\":{\"limits\":{"
		"\"tandem.dev/gpu\":\"100\"}}}]}}");
	td_kube_gangs_count(&cache, 2);
	CHECK_STR(entry_of("u2")->job, "u2");
	CHECK_EQ(entry_of("u2")->gang, 0);
	CHECK_EQ(td_kube_gang_of(&cache, entry_of("u1"))->waits, 1);
	CHECK(td_kube_cache_find(&cache, "u1") == entry_of("u1"));
}

TEST(a_gang_has_all_of_its_places_or_none)
{
	const struct td_brain_place places[] = {{"n1", 0}, {"n1", 1}, {"n2", 0}};
	struct td_kube_pick picks[3];

	begin();
	pod("u1", 3, 100, "");
	pod("u2", 3, 100, "");
	td_kube_gangs_count(&cache, 1);
	CHECK_EQ(td_kube_gang_pick(&cache, "u1", 1, places, 3, picks), -EAGAIN);
	pod("u3", 3, 100, "");
	td_kube_gangs_count(&cache, 2);
	CHECK_EQ(td_kube_gang_pick(&cache, "u1", 1, places, 3, picks), 3);
	/* One is bound already, and the others have what it has not. */
	bind_to("u2", "n1", 1, 1);
	td_kube_gangs_count(&cache, 3);
	CHECK_EQ(td_kube_gang_pick(&cache, "u1", 1, places, 3, picks), 2);
	CHECK_EQ(picks[0].place, 0);
	CHECK_EQ(picks[1].place, 2);
	/* One that is bound elsewhere, or of another placement, is to leave first. */
	bind_to("u2", "n3", 1, 1);
	CHECK_EQ(td_kube_gang_pick(&cache, "u1", 1, places, 3, picks), -EAGAIN);
	bind_to("u2", "n1", 1, 1);
	CHECK_EQ(td_kube_gang_pick(&cache, "u1", 2, places, 3, picks), -EAGAIN);
}

TEST(a_gang_that_was_sent_back_keeps_its_name_for_a_while)
{
	begin();
	pod("u1", 1, 100, "");
	td_kube_gangs_count(&cache, 1);
	bind_to("u1", "n1", 0, 1);
	td_kube_cache_sent_back(&cache, entry_of("u1"), 100);
	feed(td_kube_cache_pod, true,
		"{\"metadata\":{\"uid\":\"u1\",\"namespace\":\"ns\",\"name\":\"u1\"}}");
	td_kube_gangs_count(&cache, 99);
	pod("u2", 1, 100, "");
	td_kube_gangs_count(&cache, 99);
	CHECK_STR(entry_of("u2")->job, "u1");
	feed(td_kube_cache_pod, true,
		"{\"metadata\":{\"uid\":\"u2\",\"namespace\":\"ns\",\"name\":\"u2\"}}");
	td_kube_gangs_count(&cache, 100);
	pod("u3", 1, 100, "");
	td_kube_gangs_count(&cache, 101);
	CHECK_STR(entry_of("u3")->job, "u3");
}

static void node(const char *name, const char *zone)
{
	char text[512];

	snprintf(text, sizeof(text),
		"{\"metadata\":{\"name\":\"%s\",\"labels\":{\"zone\":\"%s\"}},\"status\":{"
		"\"capacity\":{\"tandem.dev/gpu\":\"100\"},\"allocatable\":{\"tandem.dev/gpu\":"
		"\"100\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
		name, zone);
	feed(td_kube_cache_node, false, text);
}

static uint32_t pool(const char *uid)
{
	return td_kube_pools_of(&pools, &entry_of(uid)->pod);
}

TEST(pods_with_equal_demands_share_a_pool)
{
	const struct td_kube_place *b;

	begin();
	node("a", "a");
	node("b", "b");
	pod("any", 1, 50, "");
	pod("b1", 1, 50, ",\"nodeSelector\":{\"zone\":\"b\"}");
	pod("b2", 1, 50, ",\"nodeSelector\":{\"zone\":\"b\"}");
	pod("c", 1, 50, ",\"nodeSelector\":{\"zone\":\"c\"}");
	td_kube_pools_find(&pools, &cache);
	CHECK_EQ(pool("any"), TD_ANYWHERE);
	CHECK_EQ(pool("b1"), pool("b2"));
	CHECK(pool("b1") != TD_ANYWHERE && pool("b1") != pool("c"));
	b = td_kube_cache_find_node(&cache, "b");
	CHECK_EQ(td_kube_pools_without(&pools, &b->node), 1u << pool("c"));
	CHECK(!td_kube_pools_somewhere(&pools, &entry_of("c")->pod));
	CHECK(td_kube_pools_somewhere(&pools, &entry_of("b1")->pod));
}

TEST(there_are_so_many_pools_and_they_come_back)
{
	char uid[16], more[64];

	begin();
	node("a", "a");
	for (unsigned k = 0; k <= TD_KUBE_DEMANDS; k++) {
		snprintf(uid, sizeof(uid), "u%u", k);
		snprintf(more, sizeof(more), ",\"nodeSelector\":{\"zone\":\"%u\"}", k);
		pod(uid, 1, 50, more);
	}
	td_kube_pools_find(&pools, &cache);
	CHECK(pool("u0") < TD_POOLS);
	CHECK_EQ(pool(uid), TD_POOLS);
	feed(td_kube_cache_pod, true,
		"{\"metadata\":{\"uid\":\"u0\",\"namespace\":\"ns\",\"name\":\"u0\"}}");
	td_kube_pools_find(&pools, &cache); /* forgets it */
	td_kube_pools_find(&pools, &cache);
	CHECK(pool(uid) < TD_POOLS);
}

TEST(pods_that_run_keep_no_pool_from_those_that_wait)
{
	char uid[16], more[64];

	begin();
	node("a", "a");
	for (uint32_t k = 0; k < TD_KUBE_DEMANDS; k++) { /* as of a DaemonSet */
		snprintf(uid, sizeof(uid), "u%u", k);
		snprintf(more, sizeof(more), ",\"nodeSelector\":{\"zone\":\"z%u\"}", k);
		pod(uid, 1, 50, more);
	}
	pod("late", 1, 50, ",\"nodeSelector\":{\"zone\":\"b\"}");
	td_kube_pools_find(&pools, &cache);
	CHECK_EQ(pool("late"), TD_POOLS);
	bind_to("u7", "a", 0, 1);
	td_kube_pools_find(&pools, &cache);
	CHECK(pool("late") < TD_POOLS);
	CHECK_EQ(pool("u7"), TD_POOLS);
	CHECK(pool("u8") < TD_POOLS);
	pod("later", 1, 50, ",\"nodeSelector\":{\"zone\":\"c\"}");
	td_kube_pools_find(&pools, &cache);
	CHECK_EQ(pool("later"), TD_POOLS);
}
