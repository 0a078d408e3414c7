/* See wire.h. The encoding is that of the protocol buffers' language guide, version 3. */
#include "onnx/wire.h"

#include <errno.h>
#include <string.h>

#define VARINT_BYTES 10

static int take_varint(struct td_span *in, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < VARINT_BYTES && in->at + i < in->end; i++) {
		value |= (uint64_t)(in->at[i] & 0x7f) << (7 * i);
		if (in->at[i] & 0x80)
			continue;
		in->at += i + 1;
		*ret = value;
		return 0;
	}
	return -EBADMSG;
}

static int take_fixed(struct td_span *in, uint32_t bytes, uint64_t *ret)
{
	if ((uint64_t)(in->end - in->at) < bytes)
		return -EBADMSG;
	*ret = 0;
	memcpy(ret, in->at, bytes);
	in->at += bytes;
	return 0;
}

static int take_bytes(struct td_span *in, struct td_span *ret)
{
	struct td_span rest = *in;
	uint64_t length;

	if (take_varint(&rest, &length) || length > (uint64_t)(rest.end - rest.at))
		return -EBADMSG;
	*ret = (struct td_span){rest.at, rest.at + length};
	in->at = ret->end;
	return 0;
}

int td_wire_next(struct td_span *message, struct td_field *ret, const char **why)
{
	struct td_span rest = *message;
	uint64_t key;
	int r;

	if (rest.at >= rest.end)
		return 0;
	*why = "the number of a field does not end";
	if (take_varint(&rest, &key))
		return -EBADMSG;
	*why = "the number of a field is not from 1 to 536870911";
	if (key >> 3 == 0 || key >> 3 > 536870911)
		return -EBADMSG;
	*ret = (struct td_field){.number = (uint32_t)(key >> 3), .wire = (enum td_wire)(key & 7)};
	switch (key & 7) {
	case TD_WIRE_VARINT:
		*why = "a number does not end";
		r = take_varint(&rest, &ret->value);
		break;
	case TD_WIRE_64:
		*why = "the message ends within a number of 8 bytes";
		r = take_fixed(&rest, 8, &ret->value);
		break;
	case TD_WIRE_32:
		*why = "the message ends within a number of 4 bytes";
		r = take_fixed(&rest, 4, &ret->value);
		break;
	case TD_WIRE_BYTES:
		*why = "a field is longer than the message around it";
		r = take_bytes(&rest, &ret->bytes);
		break;
	default: *why = "a field has no type that protocol buffers know"; r = -EBADMSG;
	}
	if (r)
		return r;
	message->at = rest.at;
	return 1;
}
