/* Any text is a comment that can be written and read again, or it is not one of ours. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "slurm/comment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), written[TD_SLURM_COMMENT_MAX];
	struct td_slurm_comment comment, again;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (!td_slurm_comment_parse(text, &comment)) {
		(void)td_slurm_comment_write(&comment, written);
		if (strlen(written) + 1 < sizeof(written)) {
			if (td_slurm_comment_parse(written, &again))
				abort();
			if (again.epoch != comment.epoch || again.gpus != comment.gpus ||
				strcmp(again.node, comment.node) ||
				strcmp(again.spec, comment.spec))
				abort();
		}
	}
	free(text);
	return 0;
}
