/* The administrator's comment of a job. */
#include "test.h"

#include <errno.h>

#include "slurm/comment.h"

TEST(a_comment_is_read_as_it_was_written)
{
	struct td_slurm_comment comment = {.spec = "0.5,mem=8Gi",
		.epoch = 7,
		.node = "node1",
		.gpu = {0, 3},
		.gpus = 2,
		.run = 1,
		.guest = true,
		.why = "it has just come"};
	struct td_slurm_comment read;
	char text[TD_SLURM_COMMENT_MAX];

	CHECK_STR(td_slurm_comment_write(&comment, text),
		"tandem=0.5,mem=8Gi epoch=7 on=node1:0+3 run=1 guest why: it has just come");
	CHECK_EQ(td_slurm_comment_parse(text, &read), 0);
	CHECK_STR(read.spec, "0.5,mem=8Gi");
	CHECK_EQ(read.epoch, 7);
	CHECK_STR(read.node, "node1");
	CHECK_EQ(read.gpus, 2);
	CHECK_EQ(read.gpu[1], 3);
	CHECK(read.guest);
	CHECK_EQ(read.run, 1);
	CHECK_STR(read.why, "it has just come");
	comment = (struct td_slurm_comment){.spec = "1"};
	CHECK_STR(td_slurm_comment_write(&comment, text), "tandem=1 epoch=0");
	CHECK_EQ(td_slurm_comment_parse(text, &read), 0);
	CHECK_EQ(read.gpus, 0);
	CHECK_EQ(read.run, TD_SLURM_ANY_RUN);
}

TEST(other_comments_are_not_ours)
{
	static const char *const others[] = {NULL, "", "tandem", "mine", "tandem=1 epoch=-1",
		"tandem=1 epoch=1x", "tandem=1 on=node1", "tandem=1 on=:0", "tandem=1 on=n:x",
		"tandem=1 on=n:1+", "tandem=1 on=n:1 on=n:2", "tandem=1 guests",
		"tandem=1 run=", "tandem=1 on=n:1 run=-1"};
	struct td_slurm_comment read;

	for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++)
		CHECK_EQ(td_slurm_comment_parse(others[k], &read), -EINVAL);
}
