/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/server/tls.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <gnutls/x509.h>

#include <base/file.h>

#define PEM_MAX (256 * 1024)

static int
read_pem(const char *path, struct sb_buf *out, struct sb_error *err)
{
	int r;

	sb_buf_init(out, PEM_MAX);
	r = sb_file_read(AT_FDCWD, path, PEM_MAX, out, err);
	return r < 0 ? sb_wrap(err, r, "TLS file %s", path) : 0;
}

/* Whether the key belongs to the first certificate of the chain, which is good at `now`. */
static int
check_pair(const char *cert, const char *key, const struct sb_buf *c, const struct sb_buf *k,
	time_t now, struct sb_error *err)
{
	const gnutls_datum_t cd = { c->data, (unsigned)c->len }, kd = { k->data, (unsigned)k->len };
	gnutls_certificate_credentials_t cred;
	gnutls_x509_crt_t *chain = NULL;
	unsigned n = 0;
	int r = gnutls_certificate_allocate_credentials(&cred);

	if (r < 0)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	r = gnutls_x509_crt_list_import2(&chain, &n, &cd, GNUTLS_X509_FMT_PEM, 0);
	if (r < 0) {
		gnutls_certificate_free_credentials(cred);
		return sb_fail(err, SB_E_INVAL, "TLS file %s holds no certificate: %s", cert,
			gnutls_strerror(r));
	}
	r = gnutls_certificate_set_x509_key_mem2(cred, &cd, &kd, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (r == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
		r = sb_fail(err, SB_E_INVAL, "the TLS key %s is not the one of the certificate %s",
			key, cert);
	else if (r < 0)
		r = sb_fail(err, SB_E_INVAL, "TLS file %s holds no key: %s", key,
			gnutls_strerror(r));
	else if (n > 0 && gnutls_x509_crt_get_expiration_time(chain[0]) < now)
		r = sb_fail(err, SB_E_INVAL, "the TLS certificate %s has expired", cert);
	for (unsigned i = 0; i < n; i++)
		gnutls_x509_crt_deinit(chain[i]);
	gnutls_free(chain);
	gnutls_certificate_free_credentials(cred);
	return r < 0 ? r : 0;
}

static int
load(const char *cert, const char *key, time_t now, struct sb_buf *out_cert, struct sb_buf *out_key,
	struct sb_error *err)
{
	struct stat st;
	int r = read_pem(cert, out_cert, err);

	sb_buf_init(out_key, PEM_MAX);
	if (r < 0)
		return r;
	if (stat(key, &st) < 0)
		return sb_fail_errno(err, "TLS file %s", key);
	if (st.st_mode & S_IRWXO)
		return sb_fail(err, SB_E_DENIED, "TLS key %s is open to others: chmod o-rwx it",
			key);
	r = read_pem(key, out_key, err);
	return r < 0 ? r : check_pair(cert, key, out_cert, out_key, now, err);
}

int
sb_rpc_tls_load(const char *cert, const char *key, struct sb_buf *out_cert, struct sb_buf *out_key,
	struct sb_error *err)
{
	return load(cert, key, 0, out_cert, out_key, err);
}

int
sb_rpc_tls_check(const char *cert, const char *key, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf c = { 0 }, k = { 0 };

	return load(cert, key, time(NULL), &c, &k, err);
}
