/* The place at which tandem-web listens: a port of the loopback interface, or a unix socket. */
#pragma once

#include <stdbool.h>

struct td_err;

struct td_place {
	int fd;
	bool is_path;
	char address[256]; /* "127.0.0.1:8080" with the actual port; or the path */
};

/*
 * Listens at "127.0.0.1:0", "[::1]:8080" or "/path". Only the user may connect to a unix socket
 * that it makes. An old socket file that no server listens at is replaced. Returns 0, or -errno
 * with a sentence in err.
 */
int td_listen(const char *typed, struct td_place *ret, struct td_err *err);
/* Removes the unix socket. The HTTP server closes the descriptor. */
void td_listen_end(const struct td_place *place);

/*
 * Splits "HOST:PORT", where HOST must be a loopback address. Returns 0 or -EINVAL. Exposed for
 * tests.
 */
int td_listen_parse(const char *typed, char *ret_host, unsigned room, unsigned *ret_port);
