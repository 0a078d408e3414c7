/* When a daemon that somebody waits for is asked, and when it is given up. */
#include "preload/agent/heartbeat.h"
#include "test.h"

#define S TD_NS_PER_S

/* Looks once a second until the verdict is not FINE. Returns the seconds, or 0: it stayed so. */
static unsigned seconds_until(
	struct td_heartbeat *beat, enum td_heartbeat_verdict verdict, uint64_t *now_ns)
{
	for (unsigned i = 1; i <= 100; i++) {
		enum td_heartbeat_verdict r = td_heartbeat_look(beat, true, *now_ns += S);

		if (r == verdict)
			return i;
		if (r != TD_HEARTBEAT_FINE)
			return 0;
	}
	return 0;
}

TEST(who_waits_asks_and_gives_up_when_there_is_no_answer)
{
	struct td_heartbeat beat = {.looked_ns = 100 * S};
	uint64_t now = 100 * S;

	CHECK_EQ(seconds_until(&beat, TD_HEARTBEAT_ASK, &now), 2);
	CHECK_EQ(seconds_until(&beat, TD_HEARTBEAT_SILENT, &now), 5);
}

TEST(whatever_the_daemon_says_is_an_answer)
{
	struct td_heartbeat beat = {.looked_ns = 100 * S};
	uint64_t now = 100 * S;

	for (unsigned i = 0; i < 10; i++) {
		CHECK_EQ(seconds_until(&beat, TD_HEARTBEAT_ASK, &now), 2);
		for (unsigned k = 0; k < 4; k++)
			CHECK_EQ(td_heartbeat_look(&beat, true, now += S), TD_HEARTBEAT_FINE);
		td_heartbeat_heard(&beat);
	}
}

TEST(nobody_who_waits_nothing_is_asked_and_nothing_counted)
{
	struct td_heartbeat beat = {.looked_ns = 100 * S};
	uint64_t now = 100 * S;

	CHECK_EQ(seconds_until(&beat, TD_HEARTBEAT_ASK, &now), 2);
	for (unsigned i = 0; i < 100; i++)
		CHECK_EQ(td_heartbeat_look(&beat, false, now += S), TD_HEARTBEAT_FINE);
	CHECK_EQ(seconds_until(&beat, TD_HEARTBEAT_ASK, &now), 2);
	CHECK_EQ(seconds_until(&beat, TD_HEARTBEAT_SILENT, &now), 5);
}

TEST(an_hour_without_a_look_is_not_an_hour_of_silence)
{
	struct td_heartbeat beat = {.looked_ns = 100 * S};
	uint64_t now = 100 * S;

	CHECK_EQ(td_heartbeat_look(&beat, true, now += 3600 * S), TD_HEARTBEAT_ASK);
	CHECK_EQ(td_heartbeat_look(&beat, true, now += 3600 * S), TD_HEARTBEAT_FINE);
	CHECK_EQ(td_heartbeat_look(&beat, true, now += 3600 * S), TD_HEARTBEAT_FINE);
	CHECK_EQ(td_heartbeat_look(&beat, true, now += 3600 * S), TD_HEARTBEAT_SILENT);
}
