/* Arbitrary lines for nvidia-cuda-mps-control: what is accepted makes sense. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "softgpu/mps/command.h"
#include "softgpu/server/mps_pipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sg_mps_command command;
	uint64_t limits[SG_MPS_GPUS_MAX];
	char line[512], error[256];
	size_t len = size < sizeof(line) - 1 ? size : sizeof(line) - 1;

	memcpy(line, data, len);
	line[len] = 0;
	(void)sg_mps_parse_limits(line, limits);
	if (sg_mps_command_parse(line, &command, error, sizeof(error))) {
		assert(strlen(error) < sizeof(error));
		return 0;
	}
	assert(command.verb < SG_MPS_VERB_N && command.server >= 0 && command.client >= 0);
	assert(command.percent >= 0 && command.percent <= 100);
	return 0;
}
