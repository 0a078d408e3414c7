/*
 * The codec of messages.def: structs to packets and back. No allocation, I/O or locale; safe on any
 * input.
 *
 * A message is a tagged union. Strings are NUL-terminated arrays of TD_STR_MAX + 1 bytes; longer
 * ones are cut when encoded.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TD_PROTO_VERSION 1
#define TD_STR_MAX       255
/* The largest size of a packet in bytes, so the size that a receiver's buffer must have. */
#define TD_PROTO_MAX 4096

enum td_msg_type {
#define MESSAGE(number, name, fields) TD_MSG_TYPE_##name = number,
#include "proto/messages.def"
#undef MESSAGE
};

#define TD_FIELD_u8(name)   uint8_t name;
#define TD_FIELD_u32(name)  uint32_t name;
#define TD_FIELD_u64(name)  uint64_t name;
#define TD_FIELD_str(name)  char name[TD_STR_MAX + 1];
#define TD_FIELD_uuid(name) uint8_t name[16];
#define F(type, name)       TD_FIELD_##type(name)
#define MESSAGE(number, name, fields)                                                              \
	struct td_msg_##name {                                                                     \
		fields                                                                             \
	};
#include "proto/messages.def"
#undef MESSAGE
#undef F

struct td_msg {
	uint32_t type; /* enum td_msg_type */
	union {
#define MESSAGE(number, name, fields) struct td_msg_##name name;
#include "proto/messages.def"
#undef MESSAGE
	};
};

/* UNGOVERNED: why no plan can be about some work of a process. */
enum td_ungoverned {
	TD_GOVERNED,
	TD_UNGOVERNED_UNNAMED,  /* the driver does not tell which GPU a context is on */
	TD_UNGOVERNED_GPUS,     /* the process uses more GPUs than a client has slots */
	TD_UNGOVERNED_CONTEXTS, /* it has more contexts than the library can track */
	TD_UNGOVERNED_N,
};

/*
 * Writes the packet to buf, for which TD_PROTO_MAX always suffices. Returns its bytes, -EMSGSIZE,
 * or -EINVAL for a type that does not exist.
 */
int td_proto_encode(const struct td_msg *msg, void *buf, size_t len);

/*
 * Decodes a packet. Returns
 * - 0: *ret is complete; trailing fields that are absent are zero;
 * - TD_PROTO_UNKNOWN: well-formed, but of a type that this build does not know (ret->type is set);
 * - -EBADMSG: malformed;
 * - -EPROTO: another version of the format.
 */
int td_proto_decode(const void *buf, size_t len, struct td_msg *ret);
#define TD_PROTO_UNKNOWN 1

/* Returns the name of a message type, such as "hello", or "unknown". */
const char *td_proto_name(uint32_t type);

/* Calls change() for each string of a message of a known type; it may not make it longer. */
void td_proto_each_str(struct td_msg *msg, char *(*change)(char *text));
