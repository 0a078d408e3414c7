/* Memory pressure is read as the kernel writes it, and evicts one job at a time. */
#include <errno.h>

#include "daemon/model/machine/psi.h"
#include "test.h"

#define S 1000000000ull

static const struct td_pressure_params params = {
	.full_ppm = 100000, .lasts_ns = 3 * S, .settle_ns = 15 * S};

TEST(the_kernels_text_is_read)
{
	struct td_psi psi;

	CHECK_EQ(td_psi_parse("some avg10=12.34 avg60=0.00 avg300=0.00 total=5\n"
			      "full avg10=1.50 avg60=0.00 avg300=0.00 total=0\n",
			 &psi),
		0);
	CHECK_EQ(psi.some_ppm, 123400);
	CHECK_EQ(psi.full_ppm, 15000);
}

TEST(other_text_is_refused)
{
	static const char *const texts[] = {"", "some avg10=1.00 avg60=0.00\n",
		"some avg10=x avg60=0\nfull avg10=0.00 a", "some avg10=0.00 a\nfull avg10=101.00 a",
		"some avg10=0.00 a\nfull avg10=-1.00 a", "some avg10=0.00 a\nfull avg10=nan a",
		"some avg10=0.00 a\nnotfull avg10=1.00 a", "some avg10=0.00 a\nfull avg10=1.00"};
	struct td_psi psi = {7, 7};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		CHECK_EQ(td_psi_parse(texts[i], &psi), -EINVAL);
	CHECK_EQ(psi.full_ppm, 7);
}

TEST(pressure_that_lasts_evicts_one_job_and_then_waits)
{
	struct td_pressure pressure = {0};
	const struct td_psi high = {500000, 100000};
	unsigned evicted = 0;

	for (uint64_t s = 1; s <= 3; s++)
		CHECK(!td_pressure_step(&pressure, &params, &high, s * S));
	CHECK(td_pressure_step(&pressure, &params, &high, 4 * S));
	for (uint64_t s = 5; s < 19; s++)
		CHECK(!td_pressure_step(&pressure, &params, &high, s * S));
	for (uint64_t s = 19; s < 49; s++)
		evicted += td_pressure_step(&pressure, &params, &high, s * S);
	CHECK_EQ(evicted, 2);
}

TEST(a_moment_of_pressure_evicts_nobody)
{
	struct td_pressure pressure = {0};
	const struct td_psi high = {500000, 100000}, low = {500000, 99999};

	for (uint64_t s = 1; s < 100; s++)
		CHECK(!td_pressure_step(&pressure, &params, s % 3 ? &high : &low, s * S));
}

TEST(a_bound_of_nothing_evicts_nobody)
{
	const struct td_pressure_params off = {.lasts_ns = S, .settle_ns = S};
	struct td_pressure pressure = {0};
	const struct td_psi all = {1000000, 1000000};

	for (uint64_t s = 1; s < 100; s++)
		CHECK(!td_pressure_step(&pressure, &off, &all, s * S));
}
