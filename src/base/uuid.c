/* Implements uuid.h. */
#include "base/uuid.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

char *td_uuid_format(char *buf, const uint8_t *u)
{
	snprintf(buf, TD_UUID_TEXT,
		"GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
		u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
		u[14], u[15]);
	return buf;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int td_uuid_parse(const char *text, uint8_t *ret_uuid)
{
	uint8_t uuid[16];

	if ((strncmp(text, "GPU-", 4) && strncmp(text, "MIG-", 4)) ||
		strlen(text) != TD_UUID_TEXT - 1)
		return -EINVAL;
	text += 4;
	for (int i = 0; i < 16; i++, text += 2) {
		int high, low;

		if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
			return -EINVAL;
		high = digit(text[0]);
		low = digit(text[1]);
		if (high < 0 || low < 0)
			return -EINVAL;
		uuid[i] = (uint8_t)(high << 4 | low);
	}
	memcpy(ret_uuid, uuid, sizeof(uuid));
	return 0;
}
