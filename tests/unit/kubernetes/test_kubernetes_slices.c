/* Slices of GPUs: their names, which are best, and what a container gets that has them. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "kubernetes/slices.h"

#define A "GPU-aaaaaaaa-0000-0000-0000-000000000001"
#define B "GPU-bbbbbbbb-0000-0000-0000-000000000002"

static char names[300][TD_SLICE_TEXT];
static char *pointers[300];
static size_t count;

static void have(const char *uuid, uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i <= last; i++) {
		td_slice_write(names[count], uuid, i);
		pointers[count] = names[count];
		count++;
	}
}

static void nothing(void)
{
	count = 0;
}

/* How many of the chosen ones are of this GPU. */
static size_t of(const char *uuid, const char *const *chosen, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += !strncmp(chosen[i], uuid, strlen(uuid));
	return n;
}

TEST(a_name_is_written_and_read)
{
	char name[TD_SLICE_TEXT], uuid[TD_UUID_TEXT];
	uint32_t number;

	td_slice_write(name, A, 7);
	CHECK_STR(name, A ":07");
	CHECK(!td_slice_parse(name, uuid, &number, NULL));
	CHECK_STR(uuid, A);
	CHECK_EQ(number, 7);
}

TEST(what_is_no_slice_is_quoted_and_refused)
{
	static const char *const bad[] = {"", ":", A, A ":", A ":7", A ":007", A ":7x", A ":-1",
		"GPU-1:07", ":07", A "0:07", A ":07:08"};
	char uuid[TD_UUID_TEXT];
	uint32_t number;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct td_err err = {0};

		CHECK_EQ(td_slice_parse(bad[i], uuid, &number, &err), -EINVAL);
		CHECK(strstr(err.msg, bad[i]) && strstr(err.msg, "expected"));
	}
}

TEST(slices_are_of_the_gpu_with_most_that_are_free)
{
	const char *chosen[300];

	nothing();
	have(A, 50, 99);
	have(B, 20, 99);
	CHECK(!td_slices_prefer(pointers, count, NULL, 0, 40, NULL, chosen, NULL));
	CHECK_EQ(of(B, chosen, 40), 40);
}

TEST(a_container_stays_on_the_gpu_that_it_has_slices_of)
{
	const char *chosen[300];
	char *must[] = {(char *)A ":60"};

	nothing();
	have(B, 0, 99);
	have(A, 50, 99);
	CHECK(!td_slices_prefer(pointers, count, must, 1, 40, NULL, chosen, NULL));
	CHECK_EQ(of(A, chosen, 40), 40);
	CHECK_STR(chosen[0], A ":60");
	for (size_t i = 1; i < 40; i++)
		CHECK(strcmp(chosen[i], A ":60") != 0);
}

TEST(whole_gpus_come_before_parts_of_more)
{
	const char *chosen[300];

	nothing();
	have(A, 40, 99);
	have(B, 0, 99);
	CHECK(!td_slices_prefer(pointers, count, NULL, 0, 130, NULL, chosen, NULL));
	CHECK_EQ(of(B, chosen, 130), 100);
	CHECK_EQ(of(A, chosen, 130), 30);
}

TEST(more_than_there_is_is_refused)
{
	const char *chosen[300];
	char *must[] = {(char *)A ":01"};
	struct td_err err = {0};

	nothing();
	have(A, 50, 99);
	CHECK_EQ(td_slices_prefer(pointers, count, NULL, 0, 51, NULL, chosen, &err), -EINVAL);
	CHECK(strstr(err.msg, "51"));
	CHECK_EQ(td_slices_prefer(pointers, count, must, 1, 2, NULL, chosen, &err), -EINVAL);
	CHECK(strstr(err.msg, "\"" A ":01\""));
	CHECK_EQ(td_slices_prefer(pointers, count, pointers, 3, 2, NULL, chosen, &err), -EINVAL);
}

TEST(a_scheduler_s_choice_goes_before_room)
{
	const struct td_slices_wanted wanted = {.uuid = {A}, .count = 1};
	const char *chosen[300];

	nothing();
	have(A, 60, 99);
	have(B, 0, 99);
	CHECK(!td_slices_prefer(pointers, count, NULL, 0, 40, &wanted, chosen, NULL));
	CHECK_EQ(of(A, chosen, 40), 40);
	/* Where it has not enough room, the rest is of the other one. */
	CHECK(!td_slices_prefer(pointers, count, NULL, 0, 50, &wanted, chosen, NULL));
	CHECK_EQ(of(A, chosen, 50), 40);
}

static const char *value_of(const struct td_grant *grant, const char *which)
{
	static char value[TD_GRANT_VALUE];
	const char *name;

	for (uint32_t at = 0; (name = td_grant_variable(grant, at, value)); at++)
		if (!strcmp(name, which))
			return value;
	return NULL;
}

TEST(a_part_of_a_gpu_has_that_part_of_its_memory_and_time)
{
	struct td_grant grant;

	nothing();
	have(A, 25, 49);
	CHECK(!td_slices_grant(pointers, count, &grant, NULL));
	CHECK_STR(value_of(&grant, "TANDEM_MEM"), "25%");
	CHECK_STR(value_of(&grant, "TANDEM_WEIGHT"), "25");
	CHECK_STR(value_of(&grant, "TANDEM_GPUS"), A);
	CHECK_STR(value_of(&grant, "TANDEM_GPU_COUNT"), "1");
	CHECK_STR(value_of(&grant, "TANDEM_JOB"), "k8s.aaaaaaaa.25.25");
}

TEST(whole_gpus_have_no_limits)
{
	struct td_grant grant;

	nothing();
	have(A, 0, 99);
	have(B, 0, 99);
	CHECK(!td_slices_grant(pointers, count, &grant, NULL));
	CHECK_EQ(grant.gpus, 2);
	CHECK(!value_of(&grant, "TANDEM_MEM"));
	CHECK(!value_of(&grant, "TANDEM_WEIGHT"));
	CHECK_STR(value_of(&grant, "TANDEM_GPUS"), A "," B);
	CHECK_STR(value_of(&grant, "TANDEM_GPU_COUNT"), "2");
}

TEST(a_part_that_lies_on_two_gpus_is_used_on_one)
{
	struct td_grant grant;

	nothing();
	have(A, 90, 99);
	have(B, 0, 19);
	CHECK(!td_slices_grant(pointers, count, &grant, NULL));
	CHECK_STR(value_of(&grant, "TANDEM_GPUS"), B "," A);
	CHECK_STR(value_of(&grant, "TANDEM_GPU_COUNT"), "1");
	CHECK_STR(value_of(&grant, "TANDEM_MEM"), "30%");
	CHECK_STR(value_of(&grant, "TANDEM_JOB"), "k8s.bbbbbbbb.00.30");
}

TEST(a_container_with_no_slices_or_one_and_a_half_gpus_is_refused)
{
	struct td_grant grant;
	struct td_err err = {0};

	nothing();
	CHECK_EQ(td_slices_grant(pointers, count, &grant, &err), -EINVAL);
	have(A, 0, 99);
	have(B, 0, 49);
	CHECK_EQ(td_slices_grant(pointers, count, &grant, &err), -EINVAL);
	CHECK(strstr(err.msg, "150"));
	nothing();
	have(A, 3, 3);
	have(A, 3, 3);
	CHECK_EQ(td_slices_grant(pointers, count, &grant, &err), -EINVAL);
	CHECK(strstr(err.msg, "\"" A ":03\" is named twice"));
}
