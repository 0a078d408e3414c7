/* The address at which the admission serves. */
#pragma once

struct td_err;

/*
 * Listens at "PORT" (all addresses of this machine), "IPV4:PORT" or "[IPV6]:PORT". Port 0 is one
 * that is free. Returns 0, or -errno with err.
 */
int td_address_listen(const char *text, int *ret_fd, struct td_err *err);
/* The port of a listening socket, or 0. */
unsigned td_address_port(int fd);
