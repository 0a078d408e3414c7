/*
 * Encodes and decodes by a table of field types that is made from messages.def. The table has no
 * offsets: the C ABI puts each member at the next multiple of its alignment, and walking the types
 * with that rule finds it (test_proto.c checks this for every message).
 */
#include "proto/proto.h"

#include <errno.h>
#include <string.h>

#define HEADER_BYTES 8

enum field {
	FIELD_END,
	FIELD_u8,
	FIELD_u32,
	FIELD_u64,
	FIELD_str,
	FIELD_uuid,
};

#define F(type, name)                 FIELD_##type,
#define MESSAGE(number, name, fields) static const uint8_t fields_##name[] = {fields FIELD_END};
#include "proto/messages.def"
#undef MESSAGE
#undef F

struct layout {
	uint32_t type;
	const char *name;
	const uint8_t *fields;
};

static const struct layout layouts[] = {
#define MESSAGE(number, name, fields) {number, #name, fields_##name},
#include "proto/messages.def"
#undef MESSAGE
};

static const struct layout *find_layout(uint32_t type)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].type == type)
			return &layouts[i];
	return NULL;
}

const char *td_proto_name(uint32_t type)
{
	const struct layout *layout = find_layout(type);

	return layout ? layout->name : "unknown";
}

/* Returns the size of a field in its struct, in bytes. */
static size_t field_bytes(uint8_t field)
{
	switch ((enum field)field) {
	case FIELD_u8: return 1;
	case FIELD_u32: return 4;
	case FIELD_u64: return 8;
	case FIELD_str: return TD_STR_MAX + 1;
	case FIELD_uuid: return 16;
	case FIELD_END: break;
	}
	return 0;
}

static size_t place_field(uint8_t field, size_t offset)
{
	size_t align = field == FIELD_u32 ? 4 : field == FIELD_u64 ? 8 : 1;

	return (offset + align - 1) & ~(align - 1);
}

static void put(uint8_t *out, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		out[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *in, size_t bytes)
{
	uint64_t value = 0;

	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)in[i] << 8 * i;
	return value;
}

/* Writes one field. Returns its bytes on the wire, or 0 if there is no room. */
static size_t encode_field(uint8_t field, const char *member, uint8_t *out, size_t room)
{
	size_t bytes = field_bytes(field);
	uint64_t value = 0;

	switch ((enum field)field) {
	case FIELD_str:
		bytes = strnlen(member, TD_STR_MAX);
		if (room < bytes + 2)
			return 0;
		put(out, bytes, 2);
		memcpy(out + 2, member, bytes);
		return bytes + 2;
	case FIELD_uuid:
		if (room < bytes)
			return 0;
		memcpy(out, member, bytes);
		return bytes;
	case FIELD_u8: value = *(const uint8_t *)member; break;
	case FIELD_u32: value = *(const uint32_t *)member; break;
	case FIELD_u64: value = *(const uint64_t *)member; break;
	case FIELD_END: return 0;
	}
	if (room < bytes)
		return 0;
	put(out, value, bytes);
	return bytes;
}

int td_proto_encode(const struct td_msg *msg, void *buf, size_t len)
{
	const struct layout *layout = find_layout(msg->type);
	const char *body = (const char *)&msg->hello;
	size_t at = HEADER_BYTES, offset = 0;
	uint8_t *out = buf;

	if (!layout)
		return -EINVAL;
	if (len < HEADER_BYTES)
		return -EMSGSIZE;
	for (const uint8_t *f = layout->fields; *f != FIELD_END; f++) {
		size_t n;

		offset = place_field(*f, offset);
		n = encode_field(*f, body + offset, out + at, len - at);
		if (!n)
			return -EMSGSIZE;
		at += n;
		offset += field_bytes(*f);
	}
	put(out, TD_PROTO_VERSION, 2);
	put(out + 2, msg->type, 2);
	put(out + 4, at - HEADER_BYTES, 4);
	return (int)at;
}

/*
 * Reads one field. Returns its bytes on the wire, or -EBADMSG. A string with a NUL inside is
 * malformed, because it would compare as a shorter one.
 */
static int decode_field(uint8_t field, const uint8_t *in, size_t left, char *member)
{
	size_t bytes = field_bytes(field);

	if (field == FIELD_str) {
		size_t len;

		if (left < 2)
			return -EBADMSG;
		len = get(in, 2);
		if (len > TD_STR_MAX || left - 2 < len || memchr(in + 2, 0, len))
			return -EBADMSG;
		memcpy(member, in + 2, len);
		member[len] = 0;
		return (int)len + 2;
	}
	if (left < bytes)
		return -EBADMSG;
	if (field == FIELD_u32)
		*(uint32_t *)member = (uint32_t)get(in, 4);
	else if (field == FIELD_u64)
		*(uint64_t *)member = get(in, 8);
	else
		memcpy(member, in, bytes);
	return (int)bytes;
}

int td_proto_decode(const void *buf, size_t len, struct td_msg *ret)
{
	const uint8_t *in = buf;
	const struct layout *layout;
	char *body = (char *)&ret->hello;
	size_t at = HEADER_BYTES, offset = 0;

	if (len < HEADER_BYTES || get(in + 4, 4) != len - HEADER_BYTES)
		return -EBADMSG;
	if (get(in, 2) != TD_PROTO_VERSION)
		return -EPROTO;
	memset(ret, 0, sizeof(*ret));
	ret->type = (uint32_t)get(in + 2, 2);
	layout = find_layout(ret->type);
	if (!layout)
		return TD_PROTO_UNKNOWN;
	for (const uint8_t *f = layout->fields; *f != FIELD_END && at < len; f++) {
		int n;

		offset = place_field(*f, offset);
		n = decode_field(*f, in + at, len - at, body + offset);
		if (n < 0)
			return n;
		at += (size_t)n;
		offset += field_bytes(*f);
	}
	return 0;
}

void td_proto_each_str(struct td_msg *msg, char *(*change)(char *text))
{
	const struct layout *layout = find_layout(msg->type);
	char *body = (char *)&msg->hello;
	size_t offset = 0;

	if (!layout)
		return;
	for (const uint8_t *f = layout->fields; *f != FIELD_END; f++) {
		offset = place_field(*f, offset);
		if (*f == FIELD_str)
			(void)change(body + offset);
		offset += field_bytes(*f);
	}
}
