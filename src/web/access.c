/*
 * This file implements access.h. The attacks to prevent are DNS rebinding and cross-site requests.
 */
#include "web/access.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* -- names of this machine -- */

/* Returns whether the name is an address from 127.0.0.0 to 127.255.255.255. */
static bool is_loopback(const char *name, size_t length)
{
	unsigned numbers = 1, digits = 0, value = 0;

	if (length < 9 || strncmp(name, "127.", 4))
		return false;
	for (size_t i = 4; i < length; i++) {
		if (name[i] == '.') {
			if (!digits)
				return false;
			numbers++;
			digits = value = 0;
			continue;
		}
		if (name[i] < '0' || name[i] > '9')
			return false;
		value = value * 10 + (unsigned)(name[i] - '0');
		if (++digits > 3 || value > 255)
			return false;
	}
	return numbers == 3 && digits;
}

static bool is_ours(const char *name, size_t length)
{
	return (length == 9 && !strncmp(name, "localhost", 9)) ||
	       (length == 5 && !strncmp(name, "[::1]", 5)) || is_loopback(name, length);
}

/*
 * Returns whether the Host header names this machine, such as "localhost:8080". Any port is
 * allowed, as a tunnel of ssh may use another one.
 */
static bool host_is_ours(const char *host)
{
	size_t length = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
	const char *port;

	if (length > strlen(host) || !is_ours(host, length))
		return false;
	port = host + length;
	if (!*port)
		return true;
	return *port == ':' && strlen(port + 1) <= 5 &&
	       strspn(port + 1, "0123456789") == strlen(port + 1);
}

/* -- the verdict -- */

static bool origin_is_ours(const struct td_access *a)
{
	static const char scheme[] = "http://";

	if (a->origin)
		return !strncmp(a->origin, scheme, sizeof(scheme) - 1) &&
		       !strcmp(a->origin + sizeof(scheme) - 1, a->host);
	/*
	 * A browser sends Origin with each request that changes something; other programs do not.
	 */
	if (a->does && !a->authorization)
		return false;
	return a->is_page || !a->site || !strcmp(a->site, "same-origin") ||
	       !strcmp(a->site, "none");
}

/* Compares in constant time, so that the time does not tell how much of a guess is right. */
static bool is_same(const char *text, const char *token)
{
	size_t length = strlen(token);
	unsigned char differs = 0;

	if (strlen(text) != length)
		return false;
	for (size_t i = 0; i < length; i++)
		differs |= (unsigned char)(text[i] ^ token[i]);
	return !differs;
}

static bool has_token(const struct td_access *a, const char *token)
{
	static const char bearer[] = "Bearer ";

	if (a->authorization && !strncmp(a->authorization, bearer, sizeof(bearer) - 1))
		return is_same(a->authorization + sizeof(bearer) - 1, token);
	if (a->query && a->is_page)
		return is_same(a->query, token);
	return a->cookie && is_same(a->cookie, token);
}

enum td_verdict td_access_judge(const struct td_access *access, const char *token)
{
	if (!access->host || !host_is_ours(access->host))
		return TD_ACCESS_HOST;
	if (!origin_is_ours(access))
		return TD_ACCESS_ORIGIN;
	return has_token(access, token) ? TD_ACCESS_GRANTED : TD_ACCESS_TOKEN;
}

const char *td_access_reason(enum td_verdict verdict)
{
	switch (verdict) {
	case TD_ACCESS_HOST: return "This is served to localhost, 127.0.0.1 and [::1] alone.\n";
	case TD_ACCESS_ORIGIN: return "Refused: the request came from another web page.\n";
	case TD_ACCESS_TOKEN:
		return "The token is missing or wrong: open the address that `tandem web` "
		       "printed.\n";
	case TD_ACCESS_GRANTED: break;
	}
	return "";
}

bool td_token_is_valid(const char *token)
{
	return strlen(token) == TD_TOKEN_TEXT - 1 &&
	       strspn(token, "0123456789abcdef") == TD_TOKEN_TEXT - 1;
}

/* -- orders -- */

struct scan {
	const char *at, *end;
};

static void skip_blanks(struct scan *s)
{
	while (s->at < s->end &&
		(*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
		s->at++;
}

static bool take(struct scan *s, char c)
{
	skip_blanks(s);
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

/* Returns the character that a backslash escapes; 0 if it is not allowed in an order. */
static char unescape(struct scan *s)
{
	static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *letter;

	if (s->at == s->end || !*s->at)
		return 0;
	letter = strchr(letters, *s->at++);
	return letter ? meant[letter - letters] : 0;
}

static bool take_string(struct scan *s, char *ret, size_t room)
{
	size_t length = 0;

	if (!take(s, '"'))
		return false;
	while (s->at < s->end && *s->at != '"') {
		char c = *s->at++;

		if (c == '\\')
			c = unescape(s);
		if ((unsigned char)c < 0x20 || length + 1 >= room)
			return false;
		ret[length++] = c;
	}
	ret[length] = 0;
	return take(s, '"');
}

static bool take_member(struct scan *s, struct td_order *order)
{
	char key[8];

	if (!take_string(s, key, sizeof(key)) || !take(s, ':'))
		return false;
	if (!strcmp(key, "verb"))
		return !*order->verb && take_string(s, order->verb, sizeof(order->verb));
	if (!strcmp(key, "job"))
		return !*order->job && take_string(s, order->job, sizeof(order->job));
	return false;
}

int td_order_parse(const char *body, size_t length, struct td_order *ret)
{
	struct scan s = {body, body + length};
	struct td_order order = {0};

	if (!take(&s, '{') || !take_member(&s, &order) || !take(&s, ',') ||
		!take_member(&s, &order) || !take(&s, '}'))
		return -EINVAL;
	skip_blanks(&s);
	if (s.at != s.end || !*order.verb || !*order.job)
		return -EINVAL;
	*ret = order;
	return 0;
}
