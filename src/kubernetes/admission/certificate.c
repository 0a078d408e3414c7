/* This file implements certificate.h. */
#include "kubernetes/admission/certificate.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/hash.h"

#define ID_MAX 64u

static void pair_free(struct td_pair *pair)
{
	if (!pair)
		return;
	for (unsigned i = 0; i < pair->count; i++)
		gnutls_pcert_deinit(&pair->chain[i]);
	if (pair->key)
		gnutls_privkey_deinit(pair->key);
	free(pair);
}

/* -- files -- */

/* Both files were written at some time, under some number: a renewal changes one of these. */
static uint64_t stamp_of(const struct td_certificate *certificate)
{
	const char *paths[] = {certificate->cert_path, certificate->key_path};
	uint64_t parts[8] = {0};

	for (size_t i = 0; i < 2; i++) {
		struct stat st;

		if (stat(paths[i], &st))
			continue;
		parts[4 * i] = (uint64_t)st.st_ino;
		parts[4 * i + 1] = (uint64_t)st.st_mtim.tv_sec;
		parts[4 * i + 2] = (uint64_t)st.st_mtim.tv_nsec;
		parts[4 * i + 3] = (uint64_t)st.st_size;
	}
	return td_hash_bytes(parts, sizeof(parts));
}

static int fail(const char *path, int r, struct td_err *err)
{
	return td_err_set(err, r == GNUTLS_E_MEMORY_ERROR ? -ENOMEM : -EINVAL,
		"%.200s: %s: expected PEM", path, gnutls_strerror(r));
}

static int read_chain(const char *path, struct td_pair *pair, struct td_err *err)
{
	unsigned count = TD_CERTIFICATE_CHAIN;
	gnutls_datum_t bytes;
	int r = gnutls_load_file(path, &bytes);

	if (r)
		return td_err_set(err, -ENOENT, "%.200s: it cannot be read", path);
	r = gnutls_pcert_list_import_x509_raw(pair->chain, &count, &bytes, GNUTLS_X509_FMT_PEM, 0);
	gnutls_free(bytes.data);
	if (r)
		return fail(path, r, err);
	pair->count = count;
	return 0;
}

static int read_key(const char *path, struct td_pair *pair, struct td_err *err)
{
	gnutls_datum_t bytes;
	int r = gnutls_load_file(path, &bytes);

	if (r)
		return td_err_set(err, -ENOENT, "%.200s: it cannot be read", path);
	r = gnutls_privkey_init(&pair->key);
	r = r ? r : gnutls_privkey_import_x509_raw(pair->key, &bytes, GNUTLS_X509_FMT_PEM, NULL, 0);
	gnutls_memset(bytes.data, 0, bytes.size);
	gnutls_free(bytes.data);
	return r ? fail(path, r, err) : 0;
}

/* While a renewal is amid its two files, they do not belong together. */
static int check_match(const struct td_pair *pair, struct td_err *err)
{
	unsigned char of_cert[ID_MAX], of_key[ID_MAX];
	size_t cert_len = sizeof(of_cert), key_len = sizeof(of_key);
	gnutls_pubkey_t public_key;
	int r = gnutls_pubkey_init(&public_key);

	if (r)
		return td_err_set(err, -ENOMEM, "out of memory");
	r = gnutls_pubkey_import_privkey(public_key, pair->key, 0, 0);
	r = r ? r : gnutls_pubkey_get_key_id(public_key, GNUTLS_KEYID_USE_SHA256, of_key, &key_len);
	r = r ? r
	      : gnutls_pubkey_get_key_id(
			pair->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, of_cert, &cert_len);
	gnutls_pubkey_deinit(public_key);
	if (r || cert_len != key_len || memcmp(of_cert, of_key, key_len))
		return td_err_set(err, -EINVAL, "the key is not that of the certificate");
	return 0;
}

static int read_pair(struct td_certificate *certificate, struct td_err *err)
{
	struct td_pair *pair = calloc(1, sizeof(*pair));
	int r = pair ? 0 : td_err_set(err, -ENOMEM, "out of memory");

	r = r ? r : read_chain(certificate->cert_path, pair, err);
	r = r ? r : read_key(certificate->key_path, pair, err);
	r = r ? r : check_match(pair, err);
	if (r) {
		pair_free(pair);
		return r;
	}
	pair->next = certificate->pairs;
	certificate->pairs = pair;
	return 0;
}

/* -- all -- */

int td_certificate_init(struct td_certificate *certificate, const char *cert_path,
	const char *key_path, uint64_t period_ns, struct td_err *err)
{
	*certificate = (struct td_certificate){
		.cert_path = cert_path, .key_path = key_path, .period_ns = period_ns};
	certificate->stamp = stamp_of(certificate);
	return read_pair(certificate, err);
}

void td_certificate_deinit(struct td_certificate *certificate)
{
	while (certificate->pairs) {
		struct td_pair *next = certificate->pairs->next;

		pair_free(certificate->pairs);
		certificate->pairs = next;
	}
}

int td_certificate_turn(struct td_certificate *certificate, uint64_t now_ns, struct td_err *err)
{
	uint64_t stamp;
	int r;

	if (now_ns < certificate->next_ns)
		return 0;
	certificate->next_ns = now_ns + certificate->period_ns;
	stamp = stamp_of(certificate);
	if (stamp == certificate->stamp)
		return 0;
	/* Before reading: what changes amid it is read the next time. */
	certificate->stamp = stamp;
	r = read_pair(certificate, err);
	return r ? r : 1;
}
