// Reads the certificates, if the program is built with TLS.
#include "certificates.hpp"

#include <stdexcept>

#ifdef COPPICE_WITH_TLS
#include <coppice/tls.hpp>
#endif

namespace serve {

#ifdef COPPICE_WITH_TLS

using namespace coppice;

namespace {

tls::server_options read(const options& o) {
    tls::server_options read;
#ifdef COPPICE_WITH_HTTP2
    read.protocols = {"h2", "http/1.1"};
#else
    read.protocols = {"http/1.1"};
#endif
    for (std::size_t i = 0; i != o.tls_certificates.size(); ++i) {
        read.certificates.push_back(
            tls::certificate::from_files(o.tls_certificates[i], o.tls_keys[i]));
    }
    return read;
}

}  // namespace

struct certificates::present {
    explicit present(const options& o) : from(o), slot(tls::server_context(read(o))) {}
    const options& from;
    tls::server_context_slot slot;
};

certificates::certificates(const options& o) {
    if (o.tls_certificates.empty()) return;
    present_ = std::make_shared<present>(o);
    security_ = tls::server_security_of({present_, &present_->slot});
}

void certificates::reload() {
    if (present_ == nullptr) return;
    // Tickets stay good.
    present_->slot.set(tls::server_context(read(present_->from), present_->slot.get()));
}

#else

struct certificates::present {};

certificates::certificates(const options& o) {
    if (!o.tls_certificates.empty()) {
        throw std::runtime_error("--tls-certificate: this program was built without TLS");
    }
}

void certificates::reload() {}

#endif

certificates::~certificates() = default;

}  // namespace serve
