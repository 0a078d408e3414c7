/* Walks the fields of a protobuf message in memory. Copies nothing and allocates nothing. */
#pragma once

#include <stdint.h>

/* A part of the file. */
struct td_span {
	const uint8_t *at, *end;
};

enum td_wire { TD_WIRE_VARINT, TD_WIRE_64, TD_WIRE_BYTES, TD_WIRE_32 = 5 };

struct td_field {
	uint32_t number;
	enum td_wire wire;
	uint64_t value;       /* of a number */
	struct td_span bytes; /* of a string, bytes or a message */
};

/*
 * Takes the next field off the message. 1: *ret is it. 0: the message is at its end. -EBADMSG: it
 * is no message; *why is a static sentence, and message->at is where.
 */
int td_wire_next(struct td_span *message, struct td_field *ret, const char **why);
