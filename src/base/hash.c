/* Implements FNV-1a with 64 bits (Fowler, Noll, Vo). */
#include "base/hash.h"

#include <string.h>

uint64_t td_hash_bytes(const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

uint64_t td_hash_str(const char *str)
{
	return td_hash_bytes(str, strlen(str));
}
