/* Profiles of services as bytes. */
#include <math.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "base/err.h"
#include "unit/profile/made_profile.h"

static struct td_err err;

static int parse(const void *bytes, size_t size, struct td_service_profile *ret)
{
	err = (struct td_err){0};
	return td_service_profile_from_bytes(bytes, size, ret, &err);
}

TEST(a_profile_reads_as_it_was_written)
{
	struct td_service_profile made = make_profile("Software GPU", 0.02), read;
	const double layers[TD_MUDI_LAYERS] = {3, 1};
	struct td_mudi_service before = td_service_profile_curves(&made), after;
	struct td_curve a, b;
	void *bytes, *again;
	size_t size, size_again;

	CHECK_EQ(td_service_profile_to_bytes(&made, &bytes, &size), 0);
	CHECK_EQ(parse(bytes, size, &read), 0);
	CHECK(!strcmp(read.gpu, "Software GPU") && read.curve_count == 12);
	CHECK(read.batch_min == 1 && read.batch_max == 64);
	CHECK(!memcmp(read.error, made.error, sizeof(read.error)));
	after = td_service_profile_curves(&read);
	CHECK(after.batch_min == 1 && after.batch_max == 64);
	a = td_mudi_curve(&before, layers, 8);
	b = td_mudi_curve(&after, layers, 8);
	CHECK_EQ(a.form, b.form);
	for (int tenth = 1; tenth <= 10; tenth++)
		CHECK(!(td_curve_at(&a, tenth / 10.0) < td_curve_at(&b, tenth / 10.0)) &&
			!(td_curve_at(&a, tenth / 10.0) > td_curve_at(&b, tenth / 10.0)));
	CHECK_EQ(td_service_profile_to_bytes(&read, &again, &size_again), 0);
	CHECK(size == size_again && !memcmp(bytes, again, size));
	free(bytes);
	free(again);
	td_service_profile_deinit(&read);
}

/* Each byte changed, one after another: nothing is read that was not checked. */
TEST(no_damaged_byte_does_harm)
{
	struct td_service_profile made = make_profile("Software GPU", 0.02), read;
	unsigned char *bytes;
	void *written;
	size_t size;

	CHECK_EQ(td_service_profile_to_bytes(&made, &written, &size), 0);
	bytes = written;
	for (size_t i = 0; i < size; i++) {
		bytes[i] ^= 0x81;
		if (!parse(bytes, size, &read))
			td_service_profile_deinit(&read);
		else
			CHECK(err.msg[0]);
		bytes[i] ^= 0x81;
	}
	for (size_t length = 0; length < size; length++)
		CHECK_EQ(parse(bytes, length, &read), -EINVAL);
	free(written);
}

TEST(what_is_wrong_is_said)
{
	struct td_service_profile made = make_profile("Software GPU", 0.02), read = {0};
	char *bytes;
	void *written;
	size_t size;

	CHECK_EQ(parse("text", 4, &read), -EINVAL);
	CHECK(strstr(err.msg, "not a profile"));
	CHECK_EQ(td_service_profile_to_bytes(&made, &written, &size), 0);
	bytes = written;
	CHECK_EQ(parse(bytes, size - 8, &read), -EINVAL);
	CHECK(strstr(err.msg, "ends within model 4"));
	bytes[0] = 3;
	CHECK_EQ(parse(bytes, size, &read), -EINVAL);
	CHECK(strstr(err.msg, "version 3: expected 1 or 2"));
	free(written);
	made.models[1].predictor.inputs = 3;
	made.models[1].predictor.coefficient_count = 4;
	CHECK_EQ(td_service_profile_to_bytes(&made, &written, &size), 0);
	CHECK_EQ(parse(written, size, &read), -EINVAL);
	CHECK(strstr(err.msg, "model 2 has 3 inputs: expected 12"));
	free(written);
	made = make_profile("Software GPU", 0.02);
	made.batch_max = 0;
	CHECK_EQ(td_service_profile_to_bytes(&made, &written, &size), 0);
	CHECK_EQ(parse(written, size, &read), -EINVAL);
	free(written);
	CHECK(!read.batch_max);
	made = make_profile("Software GPU", 0.02);
	made.error[1] = NAN;
	CHECK_EQ(td_service_profile_to_bytes(&made, &written, &size), 0);
	CHECK_EQ(parse(written, size, &read), -EINVAL);
	CHECK(strstr(err.msg, "error of a model"));
	free(written);
}

TEST(a_name_is_no_path)
{
	CHECK(!td_profile_check_name("bert-base_2.0+fp16", NULL));
	CHECK(td_profile_check_name("../bert", &err) && strstr(err.msg, "\"../bert\""));
	CHECK(td_profile_check_name("", NULL) && td_profile_check_name(".hidden", NULL));
	CHECK(td_profile_check_name("a/b", NULL) && td_profile_check_name("a b", NULL));
}

TEST(companies_that_were_met_are_kept_and_change_their_own_curve_only)
{
	struct td_service_profile made = make_profile("Software GPU", 0.02), read;
	const double layers[TD_MUDI_LAYERS] = {3, 1}, others[TD_MUDI_LAYERS] = {3, 2};
	struct td_mudi_service curves;
	struct td_curve met, other;
	unsigned char *bytes;
	void *written;
	size_t size;

	made.met[0] = (struct td_mudi_met){{3, 1}, 1.5, 14, 1700000000};
	made.met_count = 1;
	CHECK_EQ(td_service_profile_to_bytes(&made, &written, &size), 0);
	bytes = written;
	CHECK_EQ(bytes[0], 2);
	CHECK_EQ(parse(bytes, size, &read), 0);
	CHECK(read.met_count == 1 && !memcmp(read.met, made.met, sizeof(*read.met)));
	curves = td_service_profile_curves(&read);
	met = td_mudi_curve(&curves, layers, 8);
	other = td_mudi_curve(&curves, others, 8);
	for (double share = 0.1; share < 1; share += 0.1)
		CHECK(fabs(td_curve_at(&met, share) / td_curve_at(&other, share) - 1.5) < 1e-9);
	CHECK(fabs(td_mudi_score(&curves, layers) / td_mudi_score(&curves, others) - 1.5) < 1e-9);
	td_service_profile_deinit(&read);
	CHECK_EQ(parse(bytes, size - 8, &read), -EINVAL);
	memset(bytes + size - 3 * 8, 0xff, 8); /* the factor is not a number */
	CHECK_EQ(parse(bytes, size, &read), -EINVAL);
	CHECK(strstr(err.msg, "company 1"));
	free(written);
}
