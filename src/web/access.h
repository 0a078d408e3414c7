/*
 * Who may ask tandem-web for something. Pure: text in, a verdict out.
 *
 * A browser of this machine may be made to send requests by any page that it shows. So the Host has
 * to be a name of this machine (a name that a foreign page has bound to 127.0.0.1 is none), the
 * Origin has to be ours, and each request has the token, which a foreign page does not know.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* 128 bits in hexadecimal digits, and a NUL. */
#define TD_TOKEN_TEXT 33

/* The headers and the argument of one request; NULL: it has none. */
struct td_access {
	const char *host, *origin, *site; /* site: Sec-Fetch-Site */
	const char *authorization;        /* "Bearer TOKEN", of programs */
	const char *cookie;               /* the value of our cookie, of a page that we sent */
	const char *query;                /* ?token=, of the address that was printed */
	bool is_page; /* it asks for the page, which holds no data; a link may lead there */
	bool does;    /* it changes something */
};

enum td_verdict {
	TD_ACCESS_GRANTED,
	TD_ACCESS_HOST,
	TD_ACCESS_ORIGIN,
	TD_ACCESS_TOKEN,
};

enum td_verdict td_access_judge(const struct td_access *access, const char *token);
/* A sentence for who is refused. */
const char *td_access_reason(enum td_verdict verdict);

/* A token of that many digits, and nothing else? */
bool td_token_is_valid(const char *token);

/* An order is {"verb": "pause", "job": "17.abc"}. Values that are too long make it none. */
struct td_order {
	char verb[16], job[256];
};
/* 0, or -EINVAL: it is not of that form. */
int td_order_parse(const char *body, size_t length, struct td_order *ret);
