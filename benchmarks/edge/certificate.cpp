// Makes the certificate, signed by its own key.
#include "certificate.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

namespace bench_edge {

namespace {

[[noreturn]] void fail_to_certify(const char* what) {
    std::fprintf(stderr, "bench_edge: the certificate: %s\n", what);
    std::exit(1);
}

struct pem_file {
    explicit pem_file(const std::string& path) : stream(std::fopen(path.c_str(), "w")) {
        if (stream == nullptr) fail_to_certify("a file cannot be written");
    }
    pem_file(const pem_file&) = delete;
    ~pem_file() { std::fclose(stream); }
    std::FILE* stream;
};

}  // namespace

certificate_files::certificate_files() {
    char made[] = "/tmp/coppice-bench-edge-XXXXXX";
    if (::mkdtemp(made) == nullptr) fail_to_certify("mkdtemp");
    directory_ = made;
    const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), &::EVP_PKEY_free);
    const std::unique_ptr<X509, void (*)(X509*)> own(::X509_new(), &::X509_free);
    if (key == nullptr || own == nullptr) fail_to_certify("no memory");
    ::X509_set_version(own.get(), X509_VERSION_3);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(own.get()), 1);
    ::X509_gmtime_adj(::X509_getm_notBefore(own.get()), -3600);
    ::X509_gmtime_adj(::X509_getm_notAfter(own.get()), 7 * 24 * 3600);
    X509_NAME* const name = ::X509_get_subject_name(own.get());
    ::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>("127.0.0.1"), -1, -1, 0);
    ::X509_set_issuer_name(own.get(), name);
    ::X509_set_pubkey(own.get(), key.get());
    const pem_file to(certificate()), key_to(this->key());
    if (::X509_sign(own.get(), key.get(), ::EVP_sha256()) == 0 ||
        ::PEM_write_X509(to.stream, own.get()) != 1 ||
        ::PEM_write_PrivateKey(key_to.stream, key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
            1)
        fail_to_certify("OpenSSL refuses it");
}

certificate_files::~certificate_files() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
}

const certificate_files& shared_certificate() {
    static const certificate_files files;
    return files;
}

}  // namespace bench_edge
