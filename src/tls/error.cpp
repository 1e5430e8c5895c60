// The category of tls/error.hpp.
#include <coppice/tls/error.hpp>

#include "openssl.hpp"

#include <openssl/sslerr.h>
#include <cerrno>
#include <cstddef>
#include <new>

namespace coppice::tls {

namespace {

constexpr int verification_base = static_cast<int>(errc::verification_base);
constexpr int packed_min =
    1 << 23;  // the smallest code of OpenSSL: the library is above the reason

const char* text_of_own(int code) noexcept {
    switch (static_cast<errc>(code)) {
        case errc::truncated:
            return "the connection ended without close_notify";
        case errc::handshake_required:
            return "there has been no handshake";
        case errc::no_protocol:
            return "no application protocol in common";
        case errc::not_encrypted:
            return "the peer does not speak TLS: http request";
        case errc::no_certificate:
            return "the peer did not return a certificate";
        default:
            return "unknown error of TLS";
    }
}

class tls_errors final : public std::error_category {
public:
    const char* name() const noexcept override { return "tls"; }
    std::string message(int code) const override {
        if (code >= packed_min) {
            const unsigned long packed = static_cast<unsigned long>(code);
            if (const char* const reason = ::ERR_reason_error_string(packed)) return reason;
            const char* const library = ::ERR_lib_error_string(packed);
            return (library != nullptr ? std::string(library) : std::string("OpenSSL")) +
                   ", reason " + std::to_string(ERR_GET_REASON(packed));
        }
        if (code > verification_base)
            return std::string("certificate verify failed: ") +
                   ::X509_verify_cert_error_string(code - verification_base);
        return text_of_own(code);
    }
};

}  // namespace

const std::error_category& tls_category() noexcept {
    // Never destroyed: an error may outlive main(), and no destructor is registered.
    alignas(tls_errors) static std::byte place[sizeof(tls_errors)];
    static const std::error_category& category = *::new (static_cast<void*>(place)) tls_errors;
    return category;
}

namespace internal {

namespace {

// Names the conditions that errc lists.
std::error_code code_of_packed(unsigned long packed) noexcept {
    const int reason = ERR_GET_REASON(packed);
    if (reason == ERR_R_MALLOC_FAILURE) return std::make_error_code(std::errc::not_enough_memory);
    if (ERR_SYSTEM_ERROR(packed)) return {reason, std::system_category()};
    if (ERR_GET_LIB(packed) == ERR_LIB_SSL) {
        switch (reason) {
            case SSL_R_NO_APPLICATION_PROTOCOL:
            case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
                return errc::no_protocol;
            case SSL_R_HTTP_REQUEST:
            case SSL_R_HTTPS_PROXY_REQUEST:
                return errc::not_encrypted;
            case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
                return errc::no_certificate;
            default:
                break;
        }
    }
    return {static_cast<int>(packed), tls_category()};
}

}  // namespace

std::error_code take_error(std::error_code otherwise) noexcept {
    const unsigned long packed = ::ERR_get_error();
    ::ERR_clear_error();
    return packed == 0 ? otherwise : code_of_packed(packed);
}

void throw_error(const std::string& what) {
    const std::error_code error = take_error(std::make_error_code(std::errc::not_enough_memory));
    if (error == std::errc::not_enough_memory) throw std::bad_alloc();
    throw std::system_error(error, what);
}

std::error_code verification_error(long result) noexcept {
    if (result == X509_V_ERR_OUT_OF_MEM) return std::make_error_code(std::errc::not_enough_memory);
    return {verification_base + static_cast<int>(result), tls_category()};
}

}  // namespace internal

}  // namespace coppice::tls
