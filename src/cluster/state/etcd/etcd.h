/*
 * A state in etcd, by its JSON gateway (v3) with libcurl.
 *
 * A request goes to one endpoint until that fails, then to the next. It ends within the time-out,
 * whatever etcd does: AWAY where nothing can have been written, else UNSURE. A watch resumes behind
 * the last revision that it was told, at another endpoint if need be.
 *
 * With TLS, a certificate opens the connection. What a client may read and write follows from the
 * user and password. The certificate must have no common name: where etcd has users, its gateway
 * refuses a client that might expect to be known by that name.
 */
#pragma once

#include "cluster/state/state.h"

struct td_err;

struct td_etcd_options {
	const char *endpoints;         /* "https://a:2379,https://b:2379"; at most 16 */
	const char *ca;                /* file; NULL: the system's authorities */
	const char *certificate, *key; /* files of the client's certificate; NULL: none */
	const char *user, *password;   /* NULL: without a login. Needs https, or loopback */
	uint64_t timeout_ns;           /* of one request; 0: 3 s */
};

/*
 * Opens a handle, which td_state_free() frees, and which keeps no pointer of the options. It does
 * not connect. Returns 0, -EINVAL, -ENOMEM.
 */
int td_etcd_open(const struct td_etcd_options *options, struct td_state **ret, struct td_err *err);
