// What stands for the files of a server's certificate in the example 39: one that trusts itself.
#pragma once

#include <coppice/tls/context.hpp>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <memory>
#include <string>

inline std::string pem_text(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string text(data, static_cast<std::size_t>(size));
    BIO_free(bio);
    return text;
}

// For the host "localhost", for an hour.
inline coppice::tls::certificate certificate_for_an_hour() {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                  &EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), &X509_free);
    X509_set_version(made.get(), 2);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
    X509_set_pubkey(made.get(), key.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("trial"), -1, -1, 0);
    X509_set_issuer_name(made.get(), X509_get_subject_name(made.get()));
    X509_EXTENSION* const names =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost");
    X509_add_ext(made.get(), names, -1);
    X509_EXTENSION_free(names);
    X509_sign(made.get(), key.get(), EVP_sha256());
    BIO* const chain = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(chain, made.get());
    BIO* const secret = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(secret, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    return {.chain = pem_text(chain), .key = pem_text(secret)};
}
