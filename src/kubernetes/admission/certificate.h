/*
 * The server's certificate and key, which change while it runs: a cluster renews them in the files
 * of a mounted Secret.
 */
#pragma once

#include <gnutls/abstract.h>
#include <stdbool.h>
#include <stdint.h>

struct td_err;

#define TD_CERTIFICATE_CHAIN 8 /* the most certificates in the file */

/* A certificate with those that lead to its authority, and its key. */
struct td_pair {
	struct td_pair *next;
	gnutls_pcert_st chain[TD_CERTIFICATE_CHAIN];
	unsigned count;
	gnutls_privkey_t key;
};

struct td_certificate {
	const char *cert_path, *key_path;
	/*
	 * The newest pair comes first. Older ones stay, because a handshake may still use them, and
	 * there are as many as renewals.
	 */
	struct td_pair *pairs;
	uint64_t stamp;   /* identifies what was read of the files */
	uint64_t next_ns; /* when to look at them again */
	uint64_t period_ns;
};

/* Reads the files. Returns 0, or -EINVAL, -ENOMEM or -errno with err. */
int td_certificate_init(struct td_certificate *certificate, const char *cert_path,
	const char *key_path, uint64_t period_ns, struct td_err *err);
void td_certificate_deinit(struct td_certificate *certificate);

/*
 * Reads the files again if they have changed since. Returns 0: nothing is new; 1: there is a new
 * pair; or -errno with err: they cannot be used, and the pair before them stays. The same
 * unusable files are an error once.
 */
int td_certificate_turn(struct td_certificate *certificate, uint64_t now_ns, struct td_err *err);
