// Records of TLS 1.3 that are made by hand, as no library would make them.
#pragma once

#include <gtest/gtest.h>

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/ssl.h>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::test {

using bytes_of_key = std::vector<unsigned char>;

// HKDF-Expand-Label of RFC 8446 with SHA-256 and no context.
inline bytes_of_key expand(const bytes_of_key& secret, const std::string& label, std::size_t size) {
    const std::string full = "tls13 " + label;
    std::string info{'\0', static_cast<char>(size), static_cast<char>(full.size())};
    info += full + '\0';
    EVP_KDF* const kdf = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
    EVP_KDF_CTX* const context = EVP_KDF_CTX_new(kdf);
    int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
    char digest[] = "SHA256";
    bytes_of_key key = secret;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key.data(), key.size()),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
        OSSL_PARAM_construct_end()};
    bytes_of_key out(size);
    EXPECT_EQ(EVP_KDF_derive(context, out.data(), size, params), 1);
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
    return out;
}

// Makes the records that a client of OpenSSL would send after its handshake.
class record_maker {
public:
    // Called before the connection is made: notes the secret of its handshake.
    static void watch(SSL_CTX& context) {
        SSL_CTX_set_ciphersuites(&context, "TLS_AES_128_GCM_SHA256");
        SSL_CTX_set_keylog_callback(&context, &note_secret);
    }
    void watch(SSL& connection) { SSL_set_app_data(&connection, this); }
    // Returns a record of that type: 21 for an alert, 22 for a handshake, 23 for bytes. Call it
    // after the handshake.
    std::string seal(std::string content, char type) {
        const bytes_of_key key = expand(secret_, "key", 16);
        bytes_of_key nonce = expand(secret_, "iv", 12);
        nonce.back() = static_cast<unsigned char>(nonce.back() ^ sequence_++);
        content += type;
        const std::size_t size = content.size() + 16;
        std::string record{'\x17', '\x03', '\x03', static_cast<char>(size >> 8),
                           static_cast<char>(size)};
        const auto* const plain = reinterpret_cast<const unsigned char*>(content.data());
        const auto* const head = reinterpret_cast<const unsigned char*>(record.data());
        std::vector<unsigned char> sealed(size);
        EVP_CIPHER_CTX* const c = EVP_CIPHER_CTX_new();
        int done = 0;
        EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), nullptr, key.data(), nonce.data());
        EVP_EncryptUpdate(c, nullptr, &done, head, 5);
        EVP_EncryptUpdate(c, sealed.data(), &done, plain, static_cast<int>(content.size()));
        EVP_EncryptFinal_ex(c, sealed.data() + done, &done);
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, 16, sealed.data() + content.size());
        EVP_CIPHER_CTX_free(c);
        record.append(sealed.begin(), sealed.end());
        return record;
    }

private:
    static void note_secret(const SSL* ssl, const char* line) {
        const std::string_view text = line;
        if (!text.starts_with("CLIENT_TRAFFIC_SECRET_0 ")) return;
        const std::string hex(text.substr(text.rfind(' ') + 1));
        bytes_of_key& secret = static_cast<record_maker*>(SSL_get_app_data(ssl))->secret_;
        for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
            secret.push_back(static_cast<unsigned char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }

    bytes_of_key secret_;
    unsigned char sequence_ = 0;
};

}  // namespace coppice::test
