// Reads the certificates, if the program is built with TLS.
#include "certificates.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <stdexcept>
#include <utility>

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

std::string written(std::chrono::sys_seconds at) {
    const std::time_t seconds = at.time_since_epoch().count();
    std::tm parts{};
    std::array<char, 64> text{};
    if (::gmtime_r(&seconds, &parts) == nullptr) return std::to_string(seconds);
    return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

std::vector<std::string> out_of_date(const tls::server_options& read, const options& o) {
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    std::vector<std::string> all;
    for (std::size_t i = 0; i != read.certificates.size(); ++i) {
        const tls::validity valid = read.certificates[i].valid();
        const std::string which = "--tls-certificate: " + o.tls_certificates[i];
        if (now < valid.from) all.push_back(which + " is not valid before " + written(valid.from));
        if (now > valid.until) all.push_back(which + " has expired at " + written(valid.until));
    }
    return all;
}

}  // namespace

struct certificates::present {
    present(const options& o, const tls::server_options& first)
        : from(o), slot(tls::server_context(first)) {}
    const options& from;
    tls::server_context_slot slot;
};

certificates::certificates(const options& o) {
    if (o.tls_certificates.empty()) return;
    const tls::server_options first = read(o);
    present_ = std::make_shared<present>(o, first);
    out_of_date_ = serve::out_of_date(first, o);
    security_ = tls::server_security_of({present_, &present_->slot});
}

void certificates::reload() {
    if (present_ == nullptr) return;
    const tls::server_options next = read(present_->from);
    std::vector<std::string> late = serve::out_of_date(next, present_->from);
    // Tickets stay good.
    present_->slot.set(tls::server_context(next, present_->slot.get()));
    out_of_date_ = std::move(late);
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
