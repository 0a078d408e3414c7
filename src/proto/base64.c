/* This file implements base64.h. */
#include "proto/base64.h"

#include <stdint.h>

#include "base/text.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void td_base64_add(struct td_text *text, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i += 3) {
		size_t rest = length - i;
		uint32_t group = (uint32_t)(unsigned char)bytes[i] << 16;
		char four[4];

		if (rest > 1)
			group |= (uint32_t)(unsigned char)bytes[i + 1] << 8;
		if (rest > 2)
			group |= (unsigned char)bytes[i + 2];
		four[0] = digits[group >> 18];
		four[1] = digits[group >> 12 & 63];
		four[2] = '=';
		four[3] = '=';
		if (rest > 1)
			four[2] = digits[group >> 6 & 63];
		if (rest > 2)
			four[3] = digits[group & 63];
		td_text_put(text, four, 4);
	}
}

/* The value of a digit; 64: it is none. */
static uint32_t value_of(char digit)
{
	if (digit >= 'A' && digit <= 'Z')
		return (uint32_t)(digit - 'A');
	if (digit >= 'a' && digit <= 'z')
		return (uint32_t)(digit - 'a') + 26;
	if (digit >= '0' && digit <= '9')
		return (uint32_t)(digit - '0') + 52;
	return digit == '+' ? 62 : digit == '/' ? 63 : 64;
}

bool td_base64_decode(const char *text, size_t length, char *ret_bytes, size_t *ret_length)
{
	size_t done = 0, pads = 0;

	if (length % 4)
		return false;
	while (pads < 2 && pads < length && text[length - 1 - pads] == '=')
		pads++;
	for (size_t i = 0; i < length; i += 4) {
		size_t digits_here = i + 4 < length ? 4 : 4 - pads;
		uint32_t group = 0;

		for (size_t j = 0; j < 4; j++) {
			uint32_t value = j < digits_here ? value_of(text[i + j]) : 0;

			if (value == 64)
				return false;
			group = group << 6 | value;
		}
		for (size_t j = 0; j + 1 < digits_here; j++)
			ret_bytes[done++] = (char)(group >> (16 - 8 * j) & 255);
	}
	ret_bytes[done] = 0;
	*ret_length = done;
	return true;
}
