/* The cache of pods and nodes of the scheduler for Kubernetes. */
#include "test.h"

#include <string.h>

#include "kubernetes/sched/engine/cache.h"

static const struct td_kube_names names = {"tandem.dev/gpu", "tandem"};
static struct td_kube_cache cache;

static void begin(void)
{
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
static void pod(const char *uid, const char *owner, unsigned slices, const char *index,
	const char *more, bool is_deleted)
{
	char text[1024];

	snprintf(text, sizeof(text),
		"{\"metadata\":{\"uid\":\"%s\",\"namespace\":\"ns\",\"name\":\"%s\","
		"\"annotations\":{"
		"\"tandem.dev/gpu-index\":\"%s\",\"tandem.dev/epoch\":\"1\"},\"ownerReferences\":["
		"{\"uid\":\"%s\",\"controller\":true}]},\"spec\":{\"schedulerName\":\"tandem\","
		"\"containers\":[{\"resources\":{\"limits\":{\"tandem.dev/gpu\":\"%u\"}}}]%s}}",
		uid, uid, index, owner, slices, more);
	feed(td_kube_cache_pod, is_deleted, text);
}

static void node(const char *name, const char *slices)
{
	char text[512];

	snprintf(text, sizeof(text),
		"{\"metadata\":{\"name\":\"%s\"},\"status\":{\"capacity\":{\"tandem.dev/"
		"gpu\":\"%s\"},"
		"\"allocatable\":{\"tandem.dev/gpu\":\"%s\"},\"conditions\":[{\"type\":\"Ready\","
		"\"status\":\"True\"}]}}",
		name, slices, slices);
	feed(td_kube_cache_node, false, text);
}

#define ON_N1 ",\"nodeName\":\"n1\""

TEST(the_successor_of_a_pod_that_was_sent_back_is_the_same_job)
{
	begin();
	pod("u1", "o", 50, "0", ON_N1, false);
	td_kube_cache_sent_back(&cache, td_kube_cache_find(&cache, "u1"), 100);
	CHECK(!td_kube_cache_find(&cache, "u1"));
	pod("u2", "other", 50, "", "", false);
	pod("u3", "o", 50, "", "", false);
	CHECK_STR(td_kube_cache_find(&cache, "u1")->pod.uid, "u3");
	CHECK_STR(td_kube_cache_find(&cache, "u2")->pod.uid, "u2");
	/* One successor only; and nobody after the time is over. */
	pod("u4", "o", 50, "", "", false);
	CHECK_STR(td_kube_cache_find(&cache, "u4")->pod.uid, "u4");
	td_kube_cache_sent_back(&cache, td_kube_cache_find(&cache, "u4"), 100);
	td_kube_cache_expire(&cache, 99);
	CHECK_EQ(cache.backs, 1);
	td_kube_cache_expire(&cache, 100);
	CHECK_EQ(cache.backs, 0);
}

TEST(a_pod_is_never_unbound)
{
	begin();
	pod("u1", "o", 50, "1", ON_N1, false);
	pod("u1", "o", 50, "", "", false);
	CHECK_STR(td_kube_cache_find(&cache, "u1")->pod.node, "n1");
	CHECK_EQ(td_kube_cache_find(&cache, "u1")->pod.gpu[0], 1);
}

TEST(a_placement_stays_whatever_becomes_of_the_annotations)
{
	const struct td_kube_pod *its;

	begin();
	node("n1", "200");
	pod("u1", "o", 50, "1", ON_N1, false);
	pod("u1", "o", 50, "0", ON_N1, false);
	its = &td_kube_cache_find(&cache, "u1")->pod;
	CHECK(its->gpus == 1 && its->gpu[0] == 1);
	pod("u1", "o", 50, "", ON_N1, false);
	CHECK(its->is_placed && its->gpus == 1 && its->gpu[0] == 1 && its->epoch == 1);
	/* A pod that came to its node without the scheduler is not placed by an edit. */
	pod("u2", "o", 50, "", ON_N1, false);
	pod("u2", "o", 50, "0", ON_N1, false);
	CHECK(!td_kube_cache_find(&cache, "u2")->pod.is_placed);
	td_kube_cache_mark_foreign(&cache);
	CHECK(td_kube_cache_find_node(&cache, "n1")->is_foreign);
}

TEST(who_asks_for_something_else_is_no_successor)
{
	begin();
	pod("u1", "o", 50, "0", ON_N1, false);
	td_kube_cache_sent_back(&cache, td_kube_cache_find(&cache, "u1"), 100);
	pod("u2", "o", 60, "", "", false);
	CHECK_STR(td_kube_cache_find(&cache, "u2")->pod.uid, "u2");
	strcpy(cache.back[0].space, "elsewhere");
	pod("u3", "o", 50, "", "", false);
	CHECK_STR(td_kube_cache_find(&cache, "u3")->pod.uid, "u3");
	strcpy(cache.back[0].space, "ns");
	pod("u4", "o", 50, "", "", false);
	CHECK_STR(td_kube_cache_find(&cache, "u1")->pod.uid, "u4");
}

TEST(a_list_ends_what_it_does_not_have)
{
	begin();
	node("n1", "100");
	node("n2", "100");
	pod("u1", "o", 50, "", "", false);
	pod("u2", "o", 50, "", "", false);
	td_kube_cache_pods_begin(&cache);
	pod("u2", "o", 50, "", "", false);
	td_kube_cache_pods_end(&cache);
	CHECK(!td_kube_cache_find(&cache, "u1") && td_kube_cache_find(&cache, "u2"));
	td_kube_cache_nodes_begin(&cache);
	node("n2", "100");
	td_kube_cache_nodes_end(&cache);
	CHECK(!td_kube_cache_find_node(&cache, "n1") && td_kube_cache_find_node(&cache, "n2"));
	pod("u2", "o", 50, "", "", true);
	CHECK(!td_kube_cache_find(&cache, "u2"));
}

TEST(a_node_without_its_plugin_keeps_its_gpus_and_is_closed)
{
	begin();
	node("n1", "200");
	node("n1", "0");
	CHECK_EQ(td_kube_cache_find_node(&cache, "n1")->node.gpus, 2);
	CHECK(!td_kube_cache_find_node(&cache, "n1")->node.is_open);
	node("n1", "200");
	CHECK(td_kube_cache_find_node(&cache, "n1")->node.is_open);
}

static bool has_room(unsigned slices, uint32_t gpu)
{
	char why[TD_KUBE_WHY];
	struct td_kube_pod asks = {.asks = {.slices = slices}};
	bool r = td_kube_cache_has_room(
		&cache, td_kube_cache_find_node(&cache, "n1"), &asks, &gpu, 1, why);

	CHECK(r == !*why);
	return r;
}

TEST(pods_that_leave_have_their_slices_until_they_are_gone)
{
	begin();
	node("n1", "200");
	pod("u1", "o", 60, "0", ON_N1, false);
	CHECK(has_room(40, 0) && !has_room(41, 0) && has_room(100, 1) && !has_room(101, 1));
	CHECK(!has_room(10, 16));
	td_kube_cache_sent_back(&cache, td_kube_cache_find(&cache, "u1"), 100);
	CHECK(!has_room(41, 0));
	pod("u1", "o", 60, "0", ON_N1, true);
	CHECK(has_room(100, 0));
}

TEST(slices_of_another_scheduler_are_noticed)
{
	begin();
	node("n1", "200");
	pod("u1", "o", 60, "0", ON_N1, false);
	td_kube_cache_mark_foreign(&cache);
	CHECK(!td_kube_cache_find_node(&cache, "n1")->is_foreign);
	pod("u2", "o", 60, "", ON_N1, false);
	td_kube_cache_mark_foreign(&cache);
	CHECK(td_kube_cache_find_node(&cache, "n1")->is_foreign);
	CHECK(has_room(40, 0) && !has_room(90, 1)); /* nobody knows where its slices are */
}
