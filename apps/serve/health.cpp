// The client of health.hpp.
#include "health.hpp"

#include <coppice/http/client.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/run.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

namespace serve {

namespace {

using namespace coppice;

// Returns a host that the server answers for; "" means any.
std::string host_for(const options& o) {
    if (o.admin_port || o.hosts.empty()) return "";
    const std::string& first = o.hosts.front();
    return first.starts_with("*.") ? "healthcheck" + first.substr(1) : first;
}

task<int> ask(io::context& loop, const io::endpoint& to, const std::string& host) {
    http::client client(loop, {.total = std::chrono::seconds(5)});
    http::client_request r;
    r.to = to;
    r.target = "/livez";
    r.host = host;
    co_return (co_await client.send(r)).status();
}

}  // namespace

// A server that listens on every address (0.0.0.0, ::) is reached by that address too: Linux then
// connects to the loopback.
int ask_for_health(const options& o) {
    const auto to = o.admin_port ? io::endpoint::parse(o.admin_address, *o.admin_port)
                                 : io::endpoint::parse(o.address, o.port);
    const std::string where = to.value().to_string();
    try {
        const std::string host = host_for(o);
        const std::optional<int> status =
            io::run([&](io::context& loop) { return ask(loop, to.value(), host); });
        if (status == 200) return 0;
        std::fprintf(stderr, "coppice-serve: /livez of %s has answered %d\n", where.c_str(),
                     status.value_or(0));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "coppice-serve: /livez of %s: %s\n", where.c_str(), e.what());
    }
    return 1;
}

}  // namespace serve
