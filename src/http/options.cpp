// The checks of options.hpp.
#include "options.hpp"

#include <coppice/base/internal/options.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>

namespace coppice::http {

using namespace internal;

namespace {

// A body is kept after its head: both together must not exceed the largest object.
constexpr std::size_t kept_bytes_most = std::numeric_limits<std::size_t>::max() / 4;

void bring_into_range(limits& l) noexcept {
    for (std::size_t* const bytes : {&l.target_bytes_max, &l.header_bytes_max, &l.body_bytes_max}) {
        *bytes = std::min(*bytes, kept_bytes_most);
    }
}

}  // namespace

server_options checked(server_options o) {
    check_option("server_options::threads", o.threads, 1, threads_most);
    if (o.simulation != nullptr && o.model != model::single) {
        throw std::invalid_argument("a server in a simulation needs model::single");
    }
    if (o.simulation != nullptr && o.handshake_pool != nullptr) {
        throw std::invalid_argument("a server in a simulation has no handshake_pool");
    }
    if (o.model == model::single && o.threads != 1) {
        throw std::invalid_argument("server_options::threads must be 1 for model::single");
    }
    check_option("timeouts::header", o.timeouts.header);
    check_option("timeouts::idle", o.timeouts.idle);
    check_option("timeouts::body", o.timeouts.body);
    check_option("timeouts::write", o.timeouts.write);
    check_option("timeouts::handler", o.timeouts.handler);
    check_option("timeouts::handler_stop", o.timeouts.handler_stop);
    check_option("timeouts::drain_request", o.timeouts.drain_request);
    check_option("timeouts::drain_first_request", o.timeouts.drain_first_request);
    check_option("server_options::requests_per_connection_max", o.requests_per_connection_max, 1,
                 std::numeric_limits<std::uint64_t>::max());
    bring_into_range(o.limits);
    return o;
}

client_options checked(client_options o) {
    check_option("client_options::connect", o.connect);
    check_option("client_options::answer", o.answer);
    check_option("client_options::body", o.body);
    check_option("client_options::total", o.total);
    check_option("client_options::idle", o.idle);
    check_option("client_options::retry_delay", o.retry_delay);
    check_option("client_options::retry_delay_max", o.retry_delay_max);
    check_option("client_options::retry_after_max", o.retry_after_max);
    o.retry_delay = std::min(o.retry_delay, o.retry_delay_max);
    bring_into_range(o.limits);
    return o;
}

}  // namespace coppice::http
