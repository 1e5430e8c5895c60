// The errors of TLS: what the library itself reports, and what OpenSSL and its verification report.
#pragma once

#include <coppice/base/version.hpp>

#include <system_error>
#include <type_traits>

namespace coppice::tls {

// Conditions that a program may want to recognize. A code of tls_category() is one of these, or
// another result of the verification of a certificate (verification_base plus X509_V_ERR_*), or a
// packed error of OpenSSL, whose message is OpenSSL's text: "tlsv1 alert unknown ca".
enum class errc {
    truncated = 1,           // the connection ended without close_notify: bytes may be missing
    handshake_required = 2,  // the handshake has not been made, or has not ended
    no_protocol = 3,         // the alert no_application_protocol: no ALPN protocol in common
    not_encrypted = 4,       // the peer speaks HTTP in the clear
    no_certificate = 5,      // the peer sent no certificate, and one is required

    verification_base = 1000,
    certificate_untrusted = 1019,  // a self-signed certificate ends the chain, and is not trusted
    unknown_issuer = 1020,         // the issuer of a certificate of the chain is not known
    certificate_not_yet_valid = 1009,
    certificate_expired = 1010,
    self_signed = 1018,
    certificate_revoked = 1023,
    wrong_purpose = 1026,
    wrong_host = 1062,     // the certificate is not for the name of the host
    wrong_address = 1064,  // the certificate is not for the address
};

// The category "tls". Its messages are readable.
const std::error_category& tls_category() noexcept;

// Returns the code of tls_category().
inline std::error_code make_error_code(errc e) noexcept {
    return {static_cast<int>(e), tls_category()};
}

}  // namespace coppice::tls

template <>
struct std::is_error_code_enum<coppice::tls::errc> : std::true_type {};
