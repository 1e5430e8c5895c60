// Tickets: AES-256-CBC and HMAC-SHA-256, as RFC 5077 recommends.
#include "tickets.hpp"

#include <coppice/base/saturating.hpp>

#include "contexts.hpp"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <algorithm>
#include <cstring>
#include <exception>

namespace coppice::tls::internal {

namespace {

time_point time_for_tickets() noexcept {
    return monotonic_clock().now();
}

}  // namespace

ticket_keys::key ticket_keys::make_key() {
    key k;
    const auto fill = [](auto& part) {
        check_made(::RAND_bytes(part.data(), static_cast<int>(part.size())) == 1, "RAND_bytes");
    };
    fill(k.name);
    fill(k.hashing);
    fill(k.encrypting);
    return k;
}

ticket_keys::ticket_keys(duration age_max) : age_max_(age_max) {
    keys_.present = make_key();
    keys_.made = time_for_tickets();
}
ticket_keys::ticket_keys(duration age_max, const ticket_keys& before)
    : age_max_(age_max), keys_(before.copy()) {}

ticket_keys::ring ticket_keys::copy() const {
    const std::lock_guard lock(mutex_);
    return keys_;
}

void ticket_keys::replace(const key& next) noexcept {
    keys_.previous = keys_.present;
    keys_.has_previous = true;
    keys_.present = next;
    keys_.made = time_for_tickets();
}

void ticket_keys::rotate() {
    const key next = make_key();
    const std::lock_guard lock(mutex_);
    replace(next);
}

bool ticket_keys::present(key& into) noexcept {
    const std::lock_guard lock(mutex_);
    const time_point now = time_for_tickets();
    if (now - keys_.made >= age_max_) {
        try {
            // A key that was not used for that long is also too old to open tickets.
            const bool drop_both = now - keys_.made >= saturating_add(age_max_, age_max_);
            replace(make_key());
            if (drop_both) keys_.has_previous = false;
        } catch (const std::exception&) {
            return false;
        }
    }
    into = keys_.present;
    return true;
}

ticket_keys::found ticket_keys::find(const unsigned char* name, key& into) noexcept {
    const std::lock_guard lock(mutex_);
    const auto is_named = [name](const key& k) {
        return std::memcmp(k.name.data(), name, k.name.size()) == 0;
    };
    const duration age = time_for_tickets() - keys_.made;
    if (is_named(keys_.present) && age < saturating_add(age_max_, age_max_)) {
        into = keys_.present;
        return age < age_max_ ? found::present : found::previous;
    }
    if (keys_.has_previous && is_named(keys_.previous) && age < age_max_) {
        into = keys_.previous;
        return found::previous;
    }
    return found::none;
}

int ticket_keys::on_ticket(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                           EVP_MAC_CTX* mac, int encrypts) noexcept {
    // 0: no ticket, or not this one. 1: use it. 2: use it, and give the client a new one.
    ticket_keys& keys = state_of(ssl).tickets();
    key k;
    int answer = 1;
    if (encrypts != 0) {
        if (!keys.present(k) || ::RAND_bytes(iv, 16) != 1) return -1;
        std::copy(k.name.begin(), k.name.end(), name);
    } else {
        const found f = keys.find(name, k);
        if (f == found::none) return 0;
        // A client of TLS 1.3 uses a ticket once: RFC 8446, appendix C.4.
        if (f == found::previous || ::SSL_version(ssl) == TLS1_3_VERSION) answer = 2;
    }
    char digest[] = "SHA256";
    OSSL_PARAM of_mac[] = {
        ::OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, k.hashing.data(), k.hashing.size()),
        ::OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        ::OSSL_PARAM_construct_end()};
    if (::EVP_MAC_CTX_set_params(mac, of_mac) != 1) return -1;
    const EVP_CIPHER* const kind = ::EVP_aes_256_cbc();
    const int set = encrypts != 0
                        ? ::EVP_EncryptInit_ex(cipher, kind, nullptr, k.encrypting.data(), iv)
                        : ::EVP_DecryptInit_ex(cipher, kind, nullptr, k.encrypting.data(), iv);
    return set == 1 ? answer : -1;
}

}  // namespace coppice::tls::internal
