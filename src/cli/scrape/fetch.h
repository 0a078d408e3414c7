/*
 * Gets a page by HTTP without waiting, for a loop that polls. It asks with HTTP/1.0, so that the
 * page comes in one piece and the server closes the connection behind it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct td_err;

#define TD_FETCH_MAX (4u << 20) /* bytes of the longest page, with its header */

struct td_fetch {
	struct sockaddr_storage address;
	socklen_t address_len;
	char path[256];
	char request[768];
	size_t request_len, sent;
	int fd;       /* -1: nothing is under way */
	short events; /* what to poll fd for */
	uint64_t deadline_ns;
	char *page;
	size_t len, room;
};

enum td_fetch_state {
	TD_FETCH_WAITS,
	TD_FETCH_DONE,
	TD_FETCH_FAILED,
	TD_FETCH_N,
};

/*
 * Takes a URL such as http://127.0.0.1:8000/metrics and finds the address of its host, once.
 * Returns 0 or -EINVAL with a sentence in err.
 */
int td_fetch_init(struct td_fetch *fetch, const char *url, struct td_err *err);
void td_fetch_deinit(struct td_fetch *fetch);

/* Begins. An earlier page is dropped. A failure is reported by td_fetch_go_on(). */
void td_fetch_begin(struct td_fetch *fetch, uint64_t deadline_ns);
/*
 * Goes on as far as possible. DONE: *ret_body is the page's body, which lives until the next call
 * of td_fetch_begin(). FAILED: *ret_why is a sentence's end, such as "it does not answer".
 */
enum td_fetch_state td_fetch_go_on(struct td_fetch *fetch, uint64_t now_ns, const char **ret_body,
	size_t *ret_len, const char **ret_why);
