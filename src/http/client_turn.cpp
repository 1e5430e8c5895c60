// The state queued of a client's request: turns at a host whose connections are limited.
#include <coppice/base/lifetime.hpp>
#include <coppice/http/internal/client_call.hpp>

#include <string>
#include <utility>

#include "client_connection.hpp"
#include "client_origins.hpp"

namespace coppice::http::internal {

// Takes a place for a connection at the host, or waits for one.
task<> client_call::admit() {
    client_hosts& hosts = *client_.hosts;
    std::string key = name_.empty() ? to_->to_string() : std::string("//").append(name_);
    if (!name_.empty()) key.append(":").append(std::to_string(port_));
    const auto found = hosts.by_name.try_emplace(std::move(key)).first;
    client_host& host = found->second;
    host.all = &hosts;
    host.name = &found->first;
    if (host.in_use < hosts.in_use_max) {
        ++host.in_use;
        host_ = &host;
        co_return;
    }
    state_ = state::queued;
    client_waiter self(*this);
    host.waiting.push_back(self);
    const scope_exit leave([&] {
        if (self.linked()) host.waiting.erase(self);
        if (client_.origins != nullptr && host.waiting.empty()) {
            client_.origins->note_unwanted(host);
        }
    });
    if (client_.origins != nullptr) client_.origins->free_place(host);
    while (host_ == nullptr) co_await wait(duration::max());
}

void client_call::release() noexcept {
    if (host_ != nullptr) std::exchange(host_, nullptr)->give_back();
}

void client_host::give_back() noexcept {
    if (client_waiter* const next = waiting.pop_front()) {
        next->call->host_ = this;
        // nullptr: the waiter is leaving by itself, and gives the place back.
        if (next->call->waiting_ != nullptr) next->call->waiting_->request_stop();
        return;
    }
    if (--in_use != 0) return;
    if (all->by_name.size() > all->hosts_max) all->by_name.erase(all->by_name.find(*name));
}

}  // namespace coppice::http::internal
