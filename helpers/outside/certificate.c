#include <errno.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/text.h"
#include "helpers/outside/outside.h"
#include "net/outside.h"

enum { DAY_SEC = 86400, SERIAL_BYTES = 16 };

struct extension {
    int nid;
    const char *value;
};

static const struct extension of_signer[] = {
    {NID_basic_constraints, "critical,CA:TRUE"},
    {NID_key_usage, "critical,keyCertSign"},
    {NID_subject_key_identifier, "hash"},
};
static const struct extension of_server[] = {
    {NID_basic_constraints, "critical,CA:FALSE"},   {NID_key_usage, "critical,digitalSignature"},
    {NID_ext_key_usage, "serverAuth"},              {NID_subject_key_identifier, "hash"},
    {NID_authority_key_identifier, "keyid:always"}, {NID_subject_alt_name, PX_OUTSIDE_CERTIFIED},
};

static bool add_extensions(X509 *cert, X509 *signer, const struct extension *list, size_t count)
{
    X509V3_CTX context;
    bool good = true;
    X509V3_set_ctx(&context, signer, cert, NULL, NULL, 0);
    for (size_t i = 0; good && i < count; i++) {
        X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, list[i].nid, list[i].value);
        good = extension && X509_add_ext(cert, extension, -1) == 1;
        X509_EXTENSION_free(extension);
    }
    return good;
}

static bool set_serial(X509 *cert)
{
    unsigned char bytes[SERIAL_BYTES];
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] &= 0x7f;           /* it is a positive number */
    BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
    bool good = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
    BN_free(number);
    return good;
}

/* A day before and after now, so that a clock that is wrong by less does not matter. The certificate is not kept. */
static bool fill(X509 *cert, const char *name, EVP_PKEY *key, X509 *signer)
{
    X509_NAME *subject = X509_get_subject_name(cert);
    return X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
           X509_gmtime_adj(X509_getm_notBefore(cert), -DAY_SEC) &&
           X509_gmtime_adj(X509_getm_notAfter(cert), DAY_SEC) && X509_set_pubkey(cert, key) == 1 &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0) == 1 &&
           X509_set_issuer_name(cert, X509_get_subject_name(signer)) == 1;
}

/* Signed by `signer`, or (NULL) by itself. */
static X509 *make(const char *name, EVP_PKEY *key, X509 *signer, EVP_PKEY *signer_key, const struct extension *list,
                  size_t count)
{
    X509 *cert = X509_new();
    X509 *by = signer ? signer : cert;
    if (cert && fill(cert, name, key, by) && add_extensions(cert, by, list, count) &&
        X509_sign(cert, signer_key, EVP_sha256()) > 0)
        return cert;
    X509_free(cert);
    return NULL;
}

static bool write_pem(X509 *cert, char *pem, size_t size)
{
    BIO *memory = BIO_new(BIO_s_mem());
    char *data = NULL;
    long n = memory && PEM_write_bio_X509(memory, cert) == 1 ? BIO_get_mem_data(memory, &data) : 0;
    bool good = n > 0 && (size_t)n < size;
    if (good) {
        memcpy(pem, data, (size_t)n);
        pem[n] = '\0';
    }
    BIO_free(memory);
    return good;
}

int certificate_make(SSL_CTX *context, char *pem, size_t size)
{
    EVP_PKEY *signer_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
    X509 *signer = NULL, *cert = NULL;
    if (signer_key && key)
        signer = make("px sandbox verify", signer_key, NULL, signer_key, of_signer, PX_COUNT_OF(of_signer));
    if (signer)
        cert = make("allowed.test", key, signer, signer_key, of_server, PX_COUNT_OF(of_server));
    bool good = cert && write_pem(signer, pem, size) && SSL_CTX_use_certificate(context, cert) == 1 &&
                SSL_CTX_use_PrivateKey(context, key) == 1;
    X509_free(cert);
    X509_free(signer);
    EVP_PKEY_free(key);
    EVP_PKEY_free(signer_key);
    return good ? 0 : -EIO;
}
