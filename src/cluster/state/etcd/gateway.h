/*
 * The words of etcd's JSON gateway (v3): bodies of requests, and what an answer says. Pure: bytes
 * in, bytes out.
 *
 * An int64 is a string. Keys and values are base64. Fields that are 0, false or PUT are left out.
 * Answers of a stream have all of it below "result".
 */
#pragma once

#include "cluster/state/state.h"

struct td_text;

#define TD_GATEWAY_TEXT 256

struct td_gateway_answer {
	uint64_t revision;          /* of the whole state */
	struct td_state_item *item; /* what a range has found */
	size_t items;
	bool has_more; /* the range has more keys behind these */
	bool is_done;  /* a commit's compares were so */
	uint64_t lease, ttl_s;
	struct td_state_event *event; /* of a watch */
	size_t events;
	bool is_canceled;
	uint64_t compacted; /* of a watch that was canceled; 0: for another reason */
	char *token;        /* of a login; NULL: none */
	int code;           /* of gRPC; 0: no error */
	char text[TD_GATEWAY_TEXT];
};

/* Keys of one prefix, or one key (limit 0), at a revision (0: now), behind a key (NULL: all). */
void td_gateway_range(struct td_text *body, const char *key, uint32_t limit, uint64_t revision,
	const char *behind);
void td_gateway_commit(struct td_text *body, const struct td_state_commit *commit);
void td_gateway_grant(struct td_text *body, uint32_t ttl_s);
/* The body of keepalive and of revoke. */
void td_gateway_lease(struct td_text *body, uint64_t lease);
void td_gateway_watch(struct td_text *body, const char *prefix, uint64_t from);
void td_gateway_login(struct td_text *body, const char *user, const char *password);

/*
 * Reads one answer. Returns 0, TD_STATE_BROKEN or -ENOMEM; on 0 the caller frees it. Keys that
 * no state takes (a NUL inside, too long) are left out.
 */
int td_gateway_parse(const char *bytes, size_t length, struct td_gateway_answer *ret);
void td_gateway_answer_deinit(struct td_gateway_answer *answer);

/* The result for an answer; 0: it has no error. is_write: what was asked may have been done. */
int td_gateway_result(const struct td_gateway_answer *answer, bool is_write);
