/* The GPUs of the container that the kubelet is about to start. */
#include "test.h"

#include "kubernetes/sched/placed.h"

static struct td_kube_placed *placed;
static uint32_t gpus[TD_KUBE_GPUS];

#define POD(name, gpu, node, containers, status)                                                   \
	"{\"metadata\":{\"uid\":\"" name "\",\"namespace\":\"ns\",\"name\":\"" name                \
	"\",\"annotations\":{\"tandem.dev/gpu-index\":\"" gpu "\",\"tandem.dev/epoch\":\"1\"}},"   \
	"\"spec\":{\"nodeName\":\"" node "\",\"containers\":[" containers "]},\"status\":{" status \
	"}}"
#define ASKS(name, slices)                                                                         \
	"{\"name\":\"" name "\",\"resources\":{\"limits\":{\"tandem.dev/gpu\":\"" slices "\"}}}"
#define BEGUN "\"startTime\":\"2026-01-01T00:00:00Z\""

static void begin(void)
{
	td_kube_placed_free(placed);
	placed = td_kube_placed_new(NULL, "n1", "tandem.dev/gpu");
	CHECK(placed);
}

static uint32_t choose(const char *items, uint64_t slices)
{
	struct td_kube_list list;
	char text[4096];
	uint32_t count;

	snprintf(text, sizeof(text), "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[%s]}",
		items);
	CHECK_EQ(td_kube_list_read(text, strlen(text), &list), 0);
	count = td_kube_placed_choose(placed, &list, slices, gpus);
	td_kube_list_deinit(&list);
	return count;
}

TEST(a_container_has_the_gpu_of_its_pod)
{
	begin();
	CHECK_EQ(choose(POD("a", "1", "n1", ASKS("c", "50"), ""), 50), 1);
	CHECK_EQ(gpus[0], 1);
	CHECK_EQ(choose(POD("b", "2,3", "n1", ASKS("c", "200"), ""), 200), 2);
	CHECK(gpus[0] == 2 && gpus[1] == 3);
}

TEST(pods_that_have_begun_or_are_elsewhere_are_not_meant)
{
	begin();
	CHECK_EQ(choose(POD("a", "1", "n1", ASKS("c", "50"), BEGUN), 50), 0);
	CHECK_EQ(choose(POD("a", "1", "n2", ASKS("c", "50"), ""), 50), 0);
	CHECK_EQ(choose(POD("a", "", "n1", ASKS("c", "50"), ""), 50), 0);
	CHECK_EQ(choose(POD("a", "1", "n1", ASKS("c", "60"), ""), 50), 0);
	CHECK_EQ(choose("", 50), 0);
}

TEST(each_container_is_given_once_until_all_have_been)
{
	const char *items = POD("a", "0", "n1", ASKS("c", "50"), "") "," POD(
		"b", "1", "n1", ASKS("c", "25") "," ASKS("d", "50"), "");

	begin();
	CHECK_EQ(choose(items, 50), 1);
	CHECK_EQ(gpus[0], 0);
	CHECK_EQ(choose(items, 50), 1);
	CHECK_EQ(gpus[0], 1);
	CHECK_EQ(choose(items, 25), 1);
	CHECK_EQ(gpus[0], 1);
	/* The start of one has failed, and the kubelet asks again. */
	CHECK_EQ(choose(items, 50), 1);
}
