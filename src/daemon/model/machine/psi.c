/*
 * This file implements psi.h. A line is "full avg10=1.23 avg60=0.00 avg300=0.00 total=45", in
 * percent.
 */
#include "daemon/model/machine/psi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define S 1000000000ull

const struct td_pressure_params td_pressure_default = {
	.full_ppm = 100000, .lasts_ns = 3 * S, .settle_ns = 15 * S};

/* Parses the figure behind `name`. Returns 0 or -EINVAL. */
static int parse_line(const char *text, const char *name, uint32_t *ret_ppm)
{
	const char *line = strstr(text, name);
	double percent;
	char *end;

	if (!line || (line != text && line[-1] != '\n'))
		return -EINVAL;
	line += strlen(name);
	percent = strtod(line, &end);
	if (end == line || *end != ' ' || !(percent >= 0 && percent <= 100))
		return -EINVAL;
	*ret_ppm = (uint32_t)(percent * 10000 + 0.5);
	return 0;
}

int td_psi_parse(const char *text, struct td_psi *ret)
{
	struct td_psi psi;

	if (parse_line(text, "some avg10=", &psi.some_ppm) ||
		parse_line(text, "full avg10=", &psi.full_ppm))
		return -EINVAL;
	*ret = psi;
	return 0;
}

bool td_pressure_step(struct td_pressure *pressure, const struct td_pressure_params *params,
	const struct td_psi *psi, uint64_t now_ns)
{
	if (!params->full_ppm || psi->full_ppm < params->full_ppm) {
		pressure->since_ns = 0;
		return false;
	}
	if (!pressure->since_ns)
		pressure->since_ns = now_ns;
	if (now_ns < pressure->since_ns + params->lasts_ns || now_ns < pressure->settles_ns)
		return false;
	pressure->settles_ns = now_ns + params->settle_ns;
	return true;
}
