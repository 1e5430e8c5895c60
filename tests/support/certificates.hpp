// Certificates for the tests of tls, made when a test asks for them.
#pragma once

#include <coppice/tls/context.hpp>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace coppice::test {

struct wish {
    std::string names = "DNS:server.example";  // as in openssl.cnf: DNS:..., IP:...
    std::string subject = "server";
    long begins = -3600;  // seconds from now
    long ends = 3600;
    std::string usage = {};     // extended: clientAuth, ...
    std::string raw_name = {};  // a name of DNS with any bytes, instead of `names`
};

inline std::string text_in(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    return {data, static_cast<std::size_t>(size)};
}

// Issues certificates, and signs its own.
class authority {
public:
    explicit authority(const std::string& name = "authority")
        : name_(name), key_(EVP_EC_gen("P-256"), &EVP_PKEY_free), own_(nullptr, &X509_free) {
        own_ = make(*key_, {.names = "", .subject = name, .begins = -7200, .ends = 7200}, true);
    }
    // PEM of its own certificate.
    std::string pem() const { return pem_of(own_.get()); }
    tls::certificate issue(const wish& w = {}) const {
        const key_pointer key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
        const certificate_pointer made = make(*key, w, false);
        return {.chain = pem_of(made.get()), .key = pem_of(key.get())};
    }
    // A list of certificates that it has revoked (CRL), for the time from a minute ago to `ends`
    // seconds from now.
    std::string revoke(const std::vector<tls::certificate>& which, long ends = 3600) const {
        const std::unique_ptr<X509_CRL, decltype(&X509_CRL_free)> made(X509_CRL_new(),
                                                                       &X509_CRL_free);
        const std::unique_ptr<ASN1_TIME, decltype(&ASN1_TIME_free)> time(ASN1_TIME_new(),
                                                                         &ASN1_TIME_free);
        X509_CRL_set_version(made.get(), 1);
        X509_CRL_set_issuer_name(made.get(), X509_get_subject_name(own_.get()));
        X509_CRL_set1_nextUpdate(made.get(), X509_gmtime_adj(time.get(), ends));
        X509_CRL_set1_lastUpdate(made.get(), X509_gmtime_adj(time.get(), -60));
        for (const tls::certificate& each : which) {
            const std::unique_ptr<BIO, decltype(&BIO_free)> text(
                BIO_new_mem_buf(each.chain.data(), static_cast<int>(each.chain.size())), &BIO_free);
            const certificate_pointer leaf(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr),
                                           &X509_free);
            X509_REVOKED* const entry = X509_REVOKED_new();
            X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(leaf.get()));
            X509_REVOKED_set_revocationDate(entry, time.get());
            X509_CRL_add0_revoked(made.get(), entry);
        }
        X509_CRL_sign(made.get(), key_.get(), EVP_sha256());
        const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
        PEM_write_bio_X509_CRL(bio.get(), made.get());
        return text_in(bio.get());
    }
    // The same as issue() through a certificate between the two, which may or may not issue others.
    tls::certificate issue_through_another(bool may_issue, const wish& w = {}) const {
        const authority another("another");
        const certificate_pointer between =
            make(*another.key_, {.names = "", .subject = "another"}, may_issue);
        tls::certificate made = another.issue(w);
        made.chain += pem_of(between.get());
        return made;
    }
    // A certificate that is its own issuer, and has the names of a server.
    static tls::certificate self_signed() {
        authority alone("self");
        const certificate_pointer made = alone.make(*alone.key_, {.subject = "self"}, false);
        return {.chain = pem_of(made.get()), .key = pem_of(alone.key_.get())};
    }

private:
    using key_pointer = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
    using certificate_pointer = std::unique_ptr<X509, decltype(&X509_free)>;

    static std::string pem_of(X509* certificate) {
        const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
        PEM_write_bio_X509(bio.get(), certificate);
        return text_in(bio.get());
    }
    static std::string pem_of(EVP_PKEY* key) {
        const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
        PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
        return text_in(bio.get());
    }
    static X509_NAME* set_name(X509_NAME* name, const std::string& text) {
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                   reinterpret_cast<const unsigned char*>(text.c_str()), -1, -1, 0);
        return name;
    }
    static void extend(X509& certificate, int what, const std::string& value) {
        X509_EXTENSION* const e = X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str());
        X509_add_ext(&certificate, e, -1);
        X509_EXTENSION_free(e);
    }
    static void add_raw_name(X509& certificate, const std::string& name) {
        ASN1_IA5STRING* const text = ASN1_IA5STRING_new();
        ASN1_STRING_set(text, name.data(), static_cast<int>(name.size()));
        GENERAL_NAME* const general = GENERAL_NAME_new();
        GENERAL_NAME_set0_value(general, GEN_DNS, text);
        GENERAL_NAMES* const all = GENERAL_NAMES_new();
        sk_GENERAL_NAME_push(all, general);
        X509_add1_ext_i2d(&certificate, NID_subject_alt_name, all, 0, 0);
        GENERAL_NAMES_free(all);
    }
    certificate_pointer make(EVP_PKEY& key, const wish& w, bool issues) const {
        static long serial = 1;
        certificate_pointer made(X509_new(), &X509_free);
        X509_set_version(made.get(), 2);
        ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial);
        X509_gmtime_adj(X509_getm_notBefore(made.get()), w.begins);
        X509_gmtime_adj(X509_getm_notAfter(made.get()), w.ends);
        set_name(X509_get_subject_name(made.get()), w.subject);
        set_name(X509_get_issuer_name(made.get()), name_);
        X509_set_pubkey(made.get(), &key);
        extend(*made, NID_basic_constraints, issues ? "critical,CA:TRUE" : "CA:FALSE");
        if (!w.usage.empty()) extend(*made, NID_ext_key_usage, w.usage);
        if (!w.raw_name.empty()) {
            add_raw_name(*made, w.raw_name);
        } else if (!w.names.empty()) {
            extend(*made, NID_subject_alt_name, w.names);
        }
        X509_sign(made.get(), key_.get(), EVP_sha256());
        return made;
    }

    std::string name_;
    key_pointer key_;
    certificate_pointer own_;
};

}  // namespace coppice::test
