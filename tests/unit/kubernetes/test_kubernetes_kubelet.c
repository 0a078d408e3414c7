/* When the plugin registers again. There is no kubelet here, so each try fails at once. */
#include "test.h"

#include <string.h>

#include "base/time.h"
#include "kubernetes/kubelet.h"

#define S TD_NS_PER_S

static struct td_kubelet kubelet;

/* A kubelet has answered the registration at this time. */
static void be_registered(void)
{
	CHECK_EQ(td_kubelet_init(&kubelet, "/none", "tandem.sock", "tandem.dev/gpu"), 0);
	kubelet.is_registered = true;
}

TEST(one_that_follows_the_list_is_left_alone)
{
	be_registered();
	for (uint64_t now = S; now < 100 * S; now += S)
		CHECK(td_kubelet_turn(&kubelet, true, now) == UINT64_MAX);
	CHECK(kubelet.is_registered);
}

TEST(one_that_ended_the_list_is_told_again)
{
	be_registered();
	CHECK(td_kubelet_turn(&kubelet, true, 90 * S) == UINT64_MAX);
	CHECK_EQ(td_kubelet_turn(&kubelet, false, 100 * S), 105 * S);
	CHECK_EQ(td_kubelet_turn(&kubelet, false, 105 * S - 1), 105 * S);
	CHECK(kubelet.is_registered);
	CHECK_EQ(td_kubelet_turn(&kubelet, false, 105 * S), 106 * S); /* it tries each second */
	CHECK(!kubelet.is_registered && !strcmp(kubelet.why, "No such file or directory"));
}

TEST(one_that_calls_again_in_time_is_left_alone)
{
	be_registered();
	for (uint64_t now = S; now < 100 * S; now += 4 * S) {
		CHECK_EQ(td_kubelet_turn(&kubelet, false, now), now + 5 * S);
		CHECK(td_kubelet_turn(&kubelet, true, now + 3 * S) == UINT64_MAX);
	}
	CHECK(kubelet.is_registered);
}
