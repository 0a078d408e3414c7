/*
 * Parsing of CUDA_VISIBLE_DEVICES, after NVIDIA's CUDA programming guide ("Environment Variables").
 * CUDA_DEVICE_ORDER is ignored: the GPUs of a server are alike, so "fastest first" is the order of
 * the bus.
 */
#include "cuda/visible.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/uuid.h"

#define NONE UINT32_MAX

/*
 * Returns the index of the only GPU whose UUID begins with this word. UUIDs of MIG instances begin
 * with MIG- and match no GPU.
 */
static uint32_t by_uuid(const char *word, size_t len, const uint8_t (*uuids)[16], uint32_t count)
{
	uint32_t found = NONE;
	char text[TD_UUID_TEXT];

	for (uint32_t i = 0; i < count; i++) {
		td_uuid_format(text, uuids[i]);
		if (len >= sizeof(text) || strncmp(text + 4, word + 4, len - 4))
			continue;
		if (found != NONE)
			return NONE;
		found = i;
	}
	return found;
}

static uint32_t by_index(const char *word, size_t len, uint32_t count)
{
	uint32_t index = 0;

	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)word[i]))
			return NONE;
		index = index * 10 + (uint32_t)(word[i] - '0');
		if (index >= count)
			return NONE;
	}
	return len ? index : NONE;
}

static uint32_t gpu_named(const char *word, size_t len, const uint8_t (*uuids)[16], uint32_t count)
{
	while (len && isspace((unsigned char)*word))
		word++, len--;
	while (len && isspace((unsigned char)word[len - 1]))
		len--;
	return len > 4 && (!strncmp(word, "GPU-", 4) || !strncmp(word, "MIG-", 4))
		       ? by_uuid(word, len, uuids, count)
		       : by_index(word, len, count);
}

uint32_t td_visible(
	const char *list, const uint8_t (*uuids)[16], uint32_t count, uint32_t *ret_gpus)
{
	uint32_t n = 0;

	for (uint32_t i = 0; !list && i < count; i++)
		ret_gpus[n++] = i;
	while (list) {
		size_t len = strcspn(list, ",");
		uint32_t gpu = gpu_named(list, len, uuids, count);

		if (gpu == NONE)
			break;
		for (uint32_t i = 0; i < n; i++)
			if (ret_gpus[i] == gpu)
				return 0;
		ret_gpus[n++] = gpu;
		list = list[len] ? list + len + 1 : NULL;
	}
	return n;
}
