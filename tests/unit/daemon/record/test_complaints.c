/* A log is bounded whatever the rate of complaints, and says how many are missing. */
#include "test.h"

#include "daemon/record/complaints.h"

#define NOW (1000 * TD_NS_PER_S)

TEST(a_burst_is_said_and_then_one_in_ten_seconds)
{
	struct td_complaints complaints = {0};
	uint32_t suppressed = 0, said = 0;

	for (int i = 0; i < 100; i++)
		said += td_complaints_allow(&complaints, NOW, &suppressed);
	CHECK_EQ(said, TD_COMPLAINTS_BURST);
	CHECK_EQ(suppressed, 0);
	CHECK(!td_complaints_allow(&complaints, NOW + TD_COMPLAINTS_EVERY_NS - 1, &suppressed));
	CHECK(td_complaints_allow(&complaints, NOW + TD_COMPLAINTS_EVERY_NS, &suppressed));
	CHECK_EQ(suppressed, 91);
	CHECK(!td_complaints_allow(&complaints, NOW + TD_COMPLAINTS_EVERY_NS, &suppressed));
}

TEST(after_silence_the_bucket_is_full_and_no_fuller)
{
	struct td_complaints complaints = {0};
	uint32_t suppressed, said = 0;

	for (int i = 0; i < 100; i++)
		(void)td_complaints_allow(&complaints, NOW, &suppressed);
	for (int i = 0; i < 100; i++)
		said += td_complaints_allow(&complaints, NOW + 3600 * TD_NS_PER_S, &suppressed);
	CHECK_EQ(said, TD_COMPLAINTS_BURST);
}

TEST(an_hour_of_a_flood_is_few_lines)
{
	struct td_complaints complaints = {0};
	uint32_t suppressed, said = 0;

	for (uint64_t ms = 0; ms < 3600 * 1000; ms++)
		said += td_complaints_allow(&complaints, NOW + ms * TD_NS_PER_MS, &suppressed);
	CHECK_EQ(said, TD_COMPLAINTS_BURST + 359);
}
