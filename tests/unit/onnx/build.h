/* Writes protobuf messages by hand, for tests that need wrong ones too. */
#pragma once

#include <stdint.h>
#include <string.h>

struct built {
	uint8_t bytes[8192];
	size_t size;
};

static inline void put_varint(struct built *to, uint64_t value)
{
	for (; value > 127; value >>= 7)
		to->bytes[to->size++] = (uint8_t)(value | 0x80);
	to->bytes[to->size++] = (uint8_t)value;
}

static inline void put_number(struct built *to, uint32_t number, uint64_t value)
{
	put_varint(to, number << 3);
	put_varint(to, value);
}

static inline void put_bytes(struct built *to, uint32_t number, const void *bytes, size_t size)
{
	put_varint(to, number << 3 | 2);
	put_varint(to, size);
	if (size)
		memcpy(to->bytes + to->size, bytes, size);
	to->size += size;
}

static inline void put_text(struct built *to, uint32_t number, const char *text)
{
	put_bytes(to, number, text, strlen(text));
}

static inline void put_message(struct built *to, uint32_t number, const struct built *message)
{
	put_bytes(to, number, message->bytes, message->size);
}
