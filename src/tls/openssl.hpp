// What the sources of this room share: OpenSSL's objects with owners, and its errors as codes.
#pragma once

#include <coppice/tls/error.hpp>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <memory>
#include <string>
#include <system_error>

namespace coppice::tls::internal {

template <auto* Free>
struct freed_by {
    template <class T>
    void operator()(T* object) const noexcept {
        Free(object);
    }
};
using owned_context = std::unique_ptr<SSL_CTX, freed_by<&SSL_CTX_free>>;
using owned_ssl = std::unique_ptr<SSL, freed_by<&SSL_free>>;
using owned_session = std::unique_ptr<SSL_SESSION, freed_by<&SSL_SESSION_free>>;
using owned_bio = std::unique_ptr<BIO, freed_by<&BIO_free>>;
using owned_certificate = std::unique_ptr<X509, freed_by<&X509_free>>;
using owned_revocations = std::unique_ptr<X509_CRL, freed_by<&X509_CRL_free>>;
using owned_key = std::unique_ptr<EVP_PKEY, freed_by<&EVP_PKEY_free>>;

// Takes the oldest error of this thread's queue, and empties the queue. Returns `otherwise` if
// there is none.
std::error_code take_error(std::error_code otherwise) noexcept;
// Throws what take_error() returns, with a text that says what failed.
[[noreturn]] void throw_error(const std::string& what);
inline void check_made(bool made, const char* what) {
    if (!made) throw_error(what);
}
// Returns the code of a result of certificate verification.
std::error_code verification_error(long result) noexcept;

}  // namespace coppice::tls::internal
