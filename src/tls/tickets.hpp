// The keys of a server's session tickets: the present one, and the one before it.
#pragma once

#include "openssl.hpp"

#include <coppice/base/clock.hpp>

#include <array>
#include <cstddef>
#include <mutex>

namespace coppice::tls::internal {

// Threads: any. Each handshake that makes or opens a ticket takes the mutex once, to copy a key.
class ticket_keys {
public:
    // Makes a key. Errors: std::system_error if there is no randomness.
    explicit ticket_keys(coppice::internal::duration age_max);
    // Takes over the keys of `before`.
    ticket_keys(coppice::internal::duration age_max, const ticket_keys& before);
    void rotate();

    // OpenSSL's callback: prepares the contexts that encrypt a new ticket or open an old one.
    static int on_ticket(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                         EVP_MAC_CTX* mac, int encrypts) noexcept;

private:
    struct key {
        std::array<unsigned char, 16> name{};
        std::array<unsigned char, 32> hashing{};
        std::array<unsigned char, 32> encrypting{};
        ~key() { ::OPENSSL_cleanse(this, sizeof *this); }
    };
    struct ring {
        key present;
        key previous;
        bool has_previous = false;
        coppice::internal::time_point made{};
    };
    static key make_key();
    ring copy() const;
    // Copies the key for new tickets, after replacing an old one. Returns false without randomness.
    bool present(key& into) noexcept;
    enum class found { none, present, previous };
    found find(const unsigned char* name, key& into) noexcept;
    void replace(const key& next) noexcept;

    const coppice::internal::duration age_max_;
    mutable std::mutex mutex_;  // guards keys_
    ring keys_;
};

}  // namespace coppice::tls::internal
