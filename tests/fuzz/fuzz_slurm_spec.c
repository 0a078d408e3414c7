/* Any text is a share and settings that libtandem.so understands, or an error. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "slurm/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), value[TD_JOB_VALUE_MAX];
	struct td_slurm_spec spec;
	struct td_err err = {0};
	uint32_t ppm;
	const char *name;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (!td_slurm_spec_parse(text, &spec, &err)) {
		if (!spec.hundredths || spec.hundredths > 100 * TD_SLURM_GPUS_MAX || !spec.gpus)
			abort();
		for (uint32_t k = 0; (name = td_slurm_spec_variable(&spec, k, value)); k++) {
			if (!*value || strlen(value) >= sizeof(value))
				abort();
			if (!strcmp(name, "TANDEM_MEM") && td_parse_limit(value, NULL))
				abort();
			if (!strcmp(name, "TANDEM_DUTY") && td_parse_duty(value, &ppm, NULL))
				abort();
		}
	} else if (!*err.msg || strlen(err.msg) >= sizeof(err.msg)) {
		abort();
	}
	free(text);
	return 0;
}
