/*
 * Decides who may ask tandem-web for something. Pure: text in, a verdict out.
 *
 * Any page that a browser on this machine shows can make it send requests. So the Host must be a
 * name of this machine (a foreign name that resolves to 127.0.0.1 is not), the Origin must be ours,
 * and each request must have the token, which a foreign page does not know.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The bytes of a token: 128 bits as hexadecimal digits, and a NUL. */
#define TD_TOKEN_TEXT 33

/* The headers and the argument of one request; NULL: not present. */
struct td_access {
	const char *host, *origin, *site; /* site: Sec-Fetch-Site */
	const char *authorization;        /* "Bearer TOKEN", sent by programs */
	/* the value of our cookie, sent by a page that we served */
	const char *cookie;
	/* the value of ?token=, from the address that was printed */
	const char *query;
	bool is_page; /* the request is for the page, which has no data; a link may lead there */
	bool does;    /* the request changes something */
};

enum td_verdict {
	TD_ACCESS_GRANTED,
	TD_ACCESS_HOST,
	TD_ACCESS_ORIGIN,
	TD_ACCESS_TOKEN,
};

enum td_verdict td_access_judge(const struct td_access *access, const char *token);
/* Returns a sentence for a user whose request is refused. */
const char *td_access_reason(enum td_verdict verdict);

/* Returns whether the text is a token: the right number of digits, and nothing else. */
bool td_token_is_valid(const char *token);

/* An order is {"verb": "pause", "job": "17.abc"}. Longer values are refused. */
struct td_order {
	char verb[16], job[256];
};
/* Parses an order. Returns 0, or -EINVAL if the text is not of that form. */
int td_order_parse(const char *body, size_t length, struct td_order *ret);
