/* Pods, nodes, events and leases, as an API server of Kubernetes writes them. */
#include "test.h"

#include <errno.h>

#include "kubernetes/sched/read.h"

static const struct td_kube_names names = {"tandem.dev/gpu", "tandem"};
static struct td_kube_pod pod;
static struct td_kube_node node;

static json_t *json(const char *text)
{
	json_t *root = json_loads(text, 0, NULL);

	CHECK(root);
	return root;
}

static int read_pod(const char *metadata, const char *spec, const char *status)
{
	json_t *root;
	char text[4096];
	int r;

	snprintf(text, sizeof(text),
		"{\"metadata\":{\"uid\":\"u1\",\"namespace\":\"ns\",\"name\":\"p1\"%s},"
		"\"spec\":{\"schedulerName\":\"tandem\"%s},\"status\":{%s}}",
		metadata, spec, status);
	root = json(text);
	td_kube_pod_deinit(&pod); /* the one that was read before */
	r = td_kube_pod_read(root, &names, &pod);
	json_decref(root);
	return r;
}

static int read_node(const char *metadata, const char *spec, const char *status)
{
	json_t *root;
	char text[4096];
	int r;

	snprintf(text, sizeof(text),
		"{\"metadata\":{\"name\":\"n1\"%s},\"spec\":{%s},\"status\":{"
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]%s}}",
		metadata, spec, status);
	root = json(text);
	r = td_kube_node_read(root, names.resource, &node);
	json_decref(root);
	return r;
}

#define ASKS(slices) "{\"resources\":{\"limits\":{\"tandem.dev/gpu\":\"" slices "\"}}}"

TEST(quantities_are_read_as_kubernetes_writes_them)
{
	static const struct {
		const char *text;
		uint64_t milli;
	} of[] = {{"0", 0}, {"100", 100000}, {"1k", 1000000}, {"500m", 500}, {"1500m", 1500},
		{"2e3", 2000000}, {"1E2", 100000}, {"0.1", 100}, {"1Ki", 1024000},
		{"1.5Gi", 1610612736000}, {"1n", 1}, {"100u", 1}, {".5", 500}, {"+1", 1000},
		{"1e-3", 1}, {"16E", UINT64_MAX}, {"99999999999999999999999", UINT64_MAX},
		{"1e30", UINT64_MAX}};
	static const char *const bad[] = {"", "k", "1kk", "-1", "1 k", "1e", "1e+", "1e99", "1.2.3",
		"0x1", "1Kib", ".", "1i"};
	uint64_t milli = 0;

	for (size_t k = 0; k < sizeof(of) / sizeof(*of); k++) {
		CHECK(td_kube_quantity(of[k].text, &milli));
		if (milli != of[k].milli)
			test_fail(__FILE__, __LINE__, "%s: %llu, expected %llu", of[k].text,
				(unsigned long long)milli, (unsigned long long)of[k].milli);
	}
	for (size_t k = 0; k < sizeof(bad) / sizeof(*bad); k++)
		if (td_kube_quantity(bad[k], &milli))
			test_fail(__FILE__, __LINE__, "\"%s\" was taken", bad[k]);
}

TEST(a_pod_asks_for_the_sum_of_its_containers_or_the_most_of_those_before_them)
{
	CHECK_EQ(read_pod("", ",\"containers\":[" ASKS("20") "," ASKS("30") "]", ""), 0);
	CHECK(pod.is_ours && !*pod.problem && !*pod.node && !*pod.owner);
	CHECK_EQ(pod.asks.slices, 50);
	CHECK_EQ(read_pod("",
			 ",\"containers\":[" ASKS("20") "],\"initContainers\":[" ASKS(
				 "70") ","
				       "{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{"
				       "\"tandem.dev/"
				       "gpu\":\"5\",\"cpu\":\"250m\",\"memory\":\"1Mi\"}}}," ASKS(
					       "60") "]",
			 ""),
		0);
	CHECK_EQ(pod.asks.slices, 70);
	CHECK_EQ(pod.asks.cpu_milli, 250);
	CHECK_EQ(pod.asks.bytes, 1 << 20);
	CHECK_EQ(read_pod("", ",\"containers\":[{\"name\":\"c\"}]", ""), 0);
	CHECK(!pod.is_ours);
}

TEST(parts_of_several_gpus_are_refused)
{
	CHECK_EQ(read_pod("", ",\"containers\":[" ASKS("60") "," ASKS("60") "]", ""), 0);
	CHECK(strstr(pod.problem, "120 hundredths of GPUs"));
	CHECK_EQ(read_pod("", ",\"containers\":[" ASKS("100") "," ASKS("200") "]", ""), 0);
	CHECK(!*pod.problem);
	CHECK_EQ(read_pod("", ",\"containers\":[" ASKS("1700") "]", ""), 0);
	CHECK(strstr(pod.problem, "expected at most 1600"));
	CHECK_EQ(read_pod("", ",\"containers\":[" ASKS("9E") "," ASKS("9E") "," ASKS("9E") "]", ""),
		0);
	CHECK(*pod.problem);
}

TEST(the_annotations_of_a_placement_are_read)
{
	CHECK_EQ(
		read_pod(
			",\"annotations\":{\"tandem.dev/gpu-index\":\"2,3\",\"tandem.dev/"
			"epoch\":\"7\","
			"\"tandem.dev/guest\":\"true\",\"tandem.dev/class\":\"guaranteed\"},"
			"\"ownerReferences\":[{\"uid\":\"x\"},{\"uid\":\"o\",\"controller\":true}],"
			"\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"",
			",\"nodeName\":\"n1\",\"containers\":[" ASKS("200") "]",
			"\"phase\":\"Running\""),
		0);
	CHECK(pod.is_placed && pod.is_guest && pod.is_guaranteed && pod.is_leaving && !pod.is_over);
	CHECK_EQ(pod.gpus, 2);
	CHECK_EQ(pod.gpu[1], 3);
	CHECK_EQ(pod.epoch, 7);
	CHECK_STR(pod.owner, "o");
	CHECK_STR(pod.node, "n1");
}

TEST(annotations_that_make_no_placement_are_none)
{
	static const char *const index[] = {"", "x", "1,", ",1", "16", "-1", "1;2", "1 ",
		"0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,0", "1,1"};
	char text[256];

	for (size_t k = 0; k < sizeof(index) / sizeof(*index); k++) {
		snprintf(text, sizeof(text),
			",\"annotations\":{\"tandem.dev/gpu-index\":\"%s\",\"tandem.dev/"
			"epoch\":\"1\"}",
			index[k]);
		CHECK_EQ(read_pod(text, "", ""), 0);
		if (pod.is_placed)
			test_fail(__FILE__, __LINE__, "\"%s\" was taken", index[k]);
	}
	CHECK_EQ(read_pod(",\"annotations\":{\"tandem.dev/gpu-index\":\"1\"}", "", ""), 0);
	CHECK(!pod.is_placed);
	CHECK_EQ(read_pod(",\"annotations\":{\"tandem.dev/class\":\"fast\\u001b\"}", "", ""), 0);
	CHECK(strstr(pod.problem, "tandem.dev/class=fast? is not valid"));
}

TEST(an_object_without_a_name_is_no_pod)
{
	json_t *root = json("{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"}}");

	CHECK_EQ(td_kube_pod_read(root, &names, &pod), -EBADMSG);
	json_decref(root);
	root = json("[]");
	CHECK_EQ(td_kube_pod_read(root, &names, &pod), -EBADMSG);
	CHECK_EQ(td_kube_node_read(root, "r", &node), -EBADMSG);
	json_decref(root);
}

#define GPUS(has, all)                                                                             \
	",\"allocatable\":{\"tandem.dev/gpu\":\"" has "\",\"cpu\":\"7910m\"},"                     \
	"\"capacity\":{\"tandem.dev/gpu\":\"" all "\"}"

TEST(a_node_is_open_if_it_is_ready_and_no_gpu_is_broken)
{
	CHECK_EQ(read_node("", "", GPUS("1k", "1k")), 0);
	CHECK(node.is_open && node.gpus == 10 && node.has.cpu_milli == 7910);
	CHECK_EQ(read_node("", "", GPUS("100", "200")), 0);
	CHECK(!node.is_open && node.gpus == 2);
	CHECK_EQ(read_node("", "\"unschedulable\":true", GPUS("200", "200")), 0);
	CHECK(!node.is_open);
	CHECK_EQ(read_node("", "", GPUS("200", "200") ",\"conditions\":[]"), 0);
	CHECK(!node.is_open);
	CHECK_EQ(read_node("", "", ""), 0);
	CHECK(node.gpus == 0);
}

static bool allows(const char *labels, const char *taints, const char *spec)
{
	char metadata[1024], node_spec[1024], why[TD_KUBE_WHY];
	bool r;

	snprintf(metadata, sizeof(metadata), ",\"labels\":{%s}", labels);
	snprintf(node_spec, sizeof(node_spec), "\"taints\":[%s]", taints);
	CHECK_EQ(read_node(metadata, node_spec, GPUS("100", "100")), 0);
	CHECK_EQ(read_pod("", spec, ""), 0);
	r = td_kube_allows(&node, &pod, why);
	CHECK(r == !*why);
	td_kube_node_deinit(&node);
	td_kube_pod_deinit(&pod);
	return r;
}

#define POD      ",\"containers\":[" ASKS("50") "]"
#define BEARS(t) POD ",\"tolerations\":[" t "]"
#define TERM(rules)                                                                                \
	POD ",\"affinity\":{\"nodeAffinity\":{"                                                    \
	    "\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[" rules    \
	    "]}}}"
#define RULE(key, operation, values)                                                               \
	"{\"matchExpressions\":[{\"key\":\"" key "\",\"operator\":\"" operation                    \
	"\",\"values\":[" values "]}]}"

TEST(taints_keep_pods_away_that_do_not_tolerate_them)
{
	const char *taint = "{\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoSchedule\"}";

	CHECK(allows("", "", POD));
	CHECK(!allows("", taint, POD));
	CHECK(allows("", "{\"key\":\"k\",\"effect\":\"PreferNoSchedule\"}", POD));
	CHECK(allows("", taint, BEARS("{\"operator\":\"Exists\"}")));
	CHECK(allows("", taint, BEARS("{\"key\":\"k\",\"operator\":\"Exists\"}")));
	CHECK(allows("", taint, BEARS("{\"key\":\"k\",\"value\":\"v\"}")));
	CHECK(!allows("", taint, BEARS("{\"key\":\"k\",\"value\":\"w\"}")));
	CHECK(!allows(
		"", taint, BEARS("{\"key\":\"k\",\"value\":\"v\",\"effect\":\"NoExecute\"}")));
	CHECK(!allows("", taint, BEARS("{\"value\":\"v\"}")));
}

TEST(labels_are_compared_by_selector_and_affinity)
{
	const char *labels = "\"zone\":\"a\",\"size\":\"8\"";

	CHECK(allows(labels, "", POD ",\"nodeSelector\":{\"zone\":\"a\"}"));
	CHECK(!allows(labels, "", POD ",\"nodeSelector\":{\"zone\":\"b\"}"));
	CHECK(!allows("", "", POD ",\"nodeSelector\":{\"zone\":\"a\"}"));
	CHECK(allows(labels, "", TERM(RULE("zone", "In", "\"b\",\"a\""))));
	CHECK(!allows(labels, "", TERM(RULE("zone", "NotIn", "\"a\""))));
	CHECK(allows(labels, "", TERM(RULE("other", "NotIn", "\"a\""))));
	CHECK(allows(labels, "", TERM(RULE("zone", "Exists", ""))));
	CHECK(!allows(labels, "", TERM(RULE("zone", "DoesNotExist", ""))));
	CHECK(allows(labels, "", TERM(RULE("size", "Gt", "\"7\""))));
	CHECK(!allows(labels, "", TERM(RULE("size", "Lt", "\"7\""))));
	CHECK(!allows(labels, "", TERM(RULE("zone", "Lt", "\"7\""))));
	CHECK(!allows(labels, "", TERM(RULE("zone", "Near", "\"a\""))));
	CHECK(allows(
		labels, "", TERM(RULE("zone", "In", "\"x\"") "," RULE("size", "In", "\"8\""))));
	CHECK(!allows(labels, "", TERM("{}")));
	CHECK(allows(labels, "",
		TERM("{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\","
		     "\"values\":[\"n1\"]}]}")));
	CHECK(!allows(labels, "",
		TERM("{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\","
		     "\"values\":[\"n2\"]}]}")));
}

static int read_event(const char *text, struct td_kube_event *ret)
{
	return td_kube_event_read(text, strlen(text), ret);
}

TEST(events_of_a_watch_are_read)
{
	struct td_kube_event event;

	CHECK_EQ(read_event("{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{"
			    "\"resourceVersion\":\"12746\"}},\"new\":null}",
			 &event),
		0);
	CHECK(event.type == TD_KUBE_BOOKMARK);
	CHECK_STR(event.version, "12746");
	td_kube_event_deinit(&event);
	CHECK_EQ(read_event("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
			    "\"metadata\":{}}}",
			 &event),
		0);
	CHECK(event.type == TD_KUBE_ERROR && event.code == 410);
	td_kube_event_deinit(&event);
	CHECK_EQ(
		read_event(
			"{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"a\\u0000b\"}}}",
			&event),
		0);
	CHECK(event.type == TD_KUBE_DELETED);
	td_kube_event_deinit(&event);
	CHECK_EQ(read_event("{\"type\":\"RENAMED\",\"object\":{}}", &event), -EBADMSG);
	CHECK_EQ(read_event("{\"type\":\"ADDED\"}", &event), -EBADMSG);
	CHECK_EQ(read_event("<html>", &event), -EBADMSG);
}

TEST(lists_come_in_pages)
{
	const char *text = "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"a b\"},"
			   "\"items\":[{},{}]}";
	const char *none = "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":null}";
	struct td_kube_list list;

	CHECK_EQ(td_kube_list_read(text, strlen(text), &list), 0);
	CHECK_STR(list.more, "a b");
	CHECK_EQ(json_array_size(list.items), 2);
	td_kube_list_deinit(&list);
	CHECK_EQ(td_kube_list_read(none, strlen(none), &list), 0);
	CHECK(!list.more);
	td_kube_list_deinit(&list);
	CHECK_EQ(td_kube_list_read("{}", 2, &list), -EBADMSG);
}

TEST(a_lease_has_a_holder_and_a_version)
{
	const char *text = "{\"metadata\":{\"resourceVersion\":\"9\"},\"spec\":{\"holderIdentity\":"
			   "\"one\",\"leaseDurationSeconds\":10,\"leaseTransitions\":3}}";
	struct td_kube_lease lease;

	CHECK_EQ(td_kube_lease_read(text, strlen(text), &lease), 0);
	CHECK_STR(lease.holder, "one");
	CHECK(lease.duration_s == 10 && lease.transitions == 3);
	CHECK_EQ(td_kube_lease_read("{}", 2, &lease), -EBADMSG);
}
