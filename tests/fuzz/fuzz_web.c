/* Requests of browsers and others to tandem-web: headers, the token, the body. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "web/access.h"
#include "web/listen.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define TEXTS 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* flags; texts, each of which ends with a NUL; the rest is a body. Nobody without the token is let
 * in, and what is parsed is what was sent. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char texts[TEXTS][300];
	struct td_access a = {0};
	const char **to[TEXTS] = {
		&a.host, &a.origin, &a.site, &a.authorization, &a.cookie, &a.query};
	struct td_order order;
	struct td_text text = {0};
	size_t at = 1;
	bool has_token = false;
	char host[64];
	unsigned port;

	if (!size)
		return 0;
	for (unsigned i = 0; i < TEXTS; i++) {
		size_t length = strnlen((const char *)data + at, size - at);
		size_t kept = length < sizeof(texts[i]) ? length : sizeof(texts[i]) - 1;

		memcpy(texts[i], data + at, kept);
		texts[i][kept] = 0;
		has_token |= strstr(texts[i], TOKEN) != NULL;
		if (data[0] & 1u << i)
			*to[i] = texts[i];
		at += length < size - at ? length + 1 : length;
	}
	a.is_page = data[0] & 64;
	a.does = data[0] & 128;
	assert(td_access_judge(&a, TOKEN) != TD_ACCESS_GRANTED || has_token);
	if (!td_listen_parse(texts[0], host, sizeof(host), &port))
		assert(port <= 65535 && strlen(host) < sizeof(host));
	if (!td_order_parse((const char *)data + at, size - at, &order)) {
		assert(*order.verb && *order.job);
		td_text_add(&text, "{\"verb\":");
		td_text_add_json(&text, order.verb);
		td_text_add(&text, ",\"job\":");
		td_text_add_json(&text, order.job);
	}
	td_text_deinit(&text);
	return 0;
}
