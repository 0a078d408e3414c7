/* The place at which tandem-web listens: a port of the loopback interface, or a unix socket. */
#pragma once

#include <stdbool.h>

struct td_err;

struct td_place {
	int fd;
	bool is_path;
	char address[256]; /* "127.0.0.1:8080", with the port that was chosen; or the path */
};

/* typed: "127.0.0.1:0", "[::1]:8080" or "/path". Of a unix socket one is made that its user alone
 * may connect to; an old one that nobody listens at is replaced. 0, or -errno with *err. */
int td_listen(const char *typed, struct td_place *ret, struct td_err *err);
/* Removes the unix socket. Whoever accepts closes the descriptor. */
void td_listen_end(const struct td_place *place);

/* Splits "HOST:PORT" where HOST is a loopback address. 0, or -EINVAL. Exposed for tests. */
int td_listen_parse(const char *typed, char *ret_host, unsigned room, unsigned *ret_port);
