/* The file of predicted speeds (profile/speed_file.h). */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "unit/profile/made_speeds.h"

static struct td_speed_kind kinds[2];
static const struct td_speed_file made = {2, kinds};

static char *write_made(size_t *ret_size)
{
	void *bytes = NULL;

	kinds[0] = make_kind("Tesla T4");
	kinds[1] = make_kind("NVIDIA H100");
	CHECK_EQ(td_speed_file_to_bytes(&made, &bytes, ret_size), 0);
	return bytes;
}

TEST(a_file_reads_as_it_was_written)
{
	struct td_speed_file file;
	const struct td_speed_kind *kind;
	const struct td_muxflow_profile *heavy;
	struct td_err err = {0};
	size_t size, again_size;
	char *bytes = write_made(&size);
	void *again;

	CHECK_EQ(td_speed_file_from_bytes(bytes, size, &file, &err), 0);
	CHECK(!td_speed_file_kind(&file, "Tesla") && !td_speed_file_kind(&file, ""));
	kind = td_speed_file_kind(&file, "NVIDIA H100");
	CHECK(kind && kind == &file.kinds[1]);
	CHECK(!td_speed_kind_program(kind, "heav") && !td_speed_kind_program(kind, ""));
	heavy = td_speed_kind_program(kind, "heavy");
	CHECK(heavy && !memcmp(heavy, &made_programs[3].alone, sizeof(*heavy)));
	CHECK_EQ(td_speed_file_to_bytes(&file, &again, &again_size), 0);
	CHECK(size == again_size && !memcmp(bytes, again, size));
	td_speed_file_deinit(&file);
	td_speed_file_deinit(NULL);
	free(again);
	free(bytes);
}

/* Every part of a file that is cut short is refused, and so is more than a file. */
TEST(a_damaged_file_is_refused)
{
	struct td_speed_file file = {.count = 77};
	struct td_err err = {0};
	size_t size;
	char *bytes = write_made(&size), *longer = malloc(size + 1);

	for (size_t part = 0; part < size; part++)
		CHECK_EQ(td_speed_file_from_bytes(bytes, part, &file, &err), -EINVAL);
	memcpy(longer, bytes, size);
	longer[size] = 0;
	CHECK_EQ(td_speed_file_from_bytes(longer, size + 1, &file, &err), -EINVAL);
	CHECK_STR(err.msg, "it has 1 bytes behind its end");
	bytes[0] = 2;
	CHECK_EQ(td_speed_file_from_bytes(bytes, size, &file, &err), -EINVAL);
	CHECK_STR(err.msg,
		"the file has version 2: expected 1, which tandem profile campaign writes");
	bytes[0] = 1;
	bytes[16 + 63] = 'x'; /* behind the name of the GPU */
	CHECK_EQ(td_speed_file_from_bytes(bytes, size, &file, &err), -EINVAL);
	CHECK_STR(err.msg, "the name of a GPU in it is not valid");
	bytes[16 + 63] = 0;
	memset(bytes + 16 + 64 + 16 + 64, 0xff, 8); /* not a number */
	CHECK_EQ(td_speed_file_from_bytes(bytes, size, &file, &err), -EINVAL);
	CHECK(strstr(err.msg, "program 1 in it has no valid name, or a figure that"));
	CHECK_EQ(file.count, 77);
	free(longer);
	free(bytes);
}

TEST(a_predictor_of_something_else_is_refused)
{
	struct td_speed_file file;
	struct td_err err = {0};
	size_t size;
	void *bytes;

	free(write_made(&size));
	kinds[1].model.predictor.inputs--;
	kinds[1].model.predictor.coefficient_count--;
	CHECK_EQ(td_speed_file_to_bytes(&made, &bytes, &size), 0);
	CHECK_EQ(td_speed_file_from_bytes(bytes, size, &file, &err), -EINVAL);
	CHECK_STR(err.msg, "the file's predictor for \"NVIDIA H100\" has 7 inputs: expected 8");
	free(bytes);
}

TEST(a_folder_without_one_says_so)
{
	char folder[] = "/tmp/test_speed_file.XXXXXX";
	struct td_speed_file file;
	struct td_err err = {0};
	int fd;

	CHECK(mkdtemp(folder));
	fd = open(folder, O_RDONLY | O_DIRECTORY);
	CHECK_EQ(td_speed_file_load(fd, &file, &err), -ENOENT);
	CHECK_STR(err.msg, "No such file or directory");
	close(fd);
	CHECK_EQ(rmdir(folder), 0);
}
