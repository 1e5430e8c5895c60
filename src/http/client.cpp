// The connections that a client keeps, and the answers that outlive their client's task.
#include <coppice/base/internal/check.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/http/client.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>
#include <system_error>
#include <utility>

#include "client_connection.hpp"
#include "client_origins.hpp"
#include "client_session.hpp"
#include "options.hpp"

namespace coppice::http {

namespace internal {

namespace {

constexpr std::size_t sessions_of_host_max = 4;  // for connections that are made at once

std::shared_ptr<client_hosts> limited_hosts(const client_options& o) {
    if (o.connections_per_host_max == 0) return nullptr;
    auto made = std::make_shared<client_hosts>();
    made->in_use_max = o.connections_per_host_max;
    made->hosts_max = o.idle_connections_max;
    return made;
}

}  // namespace

client_core::client_core(io::context& owner, client_options o)
    : loop(owner),
      options(checked(std::move(o))),
      hosts(limited_hosts(options)),
      random_(static_cast<std::uint64_t>(loop.now().time_since_epoch().count()) | 1) {
    if (options.http2 != nullptr) origins = std::make_unique<client_origins>(*this);
}
client_core::~client_core() = default;

std::unique_ptr<client_connection> client_core::take(const client_target& target,
                                                     connections which) {
    const time_point oldest = saturating_sub(loop.now(), options.idle);
    std::erase_if(idle_, [&](const auto& c) { return c->used < oldest; });
    const auto leads_there = [&](const auto& c) { return c->leads_to(target); };
    while (which == connections::kept_or_new) {
        const auto found = std::find_if(idle_.rbegin(), idle_.rend(), leads_there);
        if (found == idle_.rend()) break;
        std::unique_ptr<client_connection> c = std::move(*found);
        idle_.erase(std::next(found).base());
        if (c->is_reusable()) return c;
    }
    return std::make_unique<client_connection>(loop, target);
}

void client_core::keep(std::unique_ptr<client_connection> used) noexcept {
    used->used = loop.now();
    used->fresh = false;
    try {
        idle_.push_back(std::move(used));
    } catch (const std::bad_alloc&) {  // the connection is closed
    }
    close_surplus();
}

void client_core::close_surplus() noexcept {
    while (idle_connections() > options.idle_connections_max) {
        client_session* const s = origins != nullptr ? origins->oldest_kept() : nullptr;
        if (s == nullptr || (!idle_.empty() && idle_.front()->used <= s->used)) {
            idle_.erase(idle_.begin());
        } else {
            s->end_use();
        }
    }
}

void client_core::keep_session(std::string_view proven, std::uint16_t port,
                               std::shared_ptr<const io::secure_session> left) noexcept {
    if (left == nullptr || options.sessions_max == 0) return;
    const auto is_of = [&](const kept_session& s) { return s.host == proven && s.port == port; };
    const auto n = static_cast<std::size_t>(std::ranges::count_if(sessions_, is_of));
    if (n >= sessions_of_host_max) {
        sessions_.erase(std::ranges::find_if(sessions_, is_of));
    } else if (sessions_.size() >= options.sessions_max) {
        sessions_.erase(sessions_.begin());
    }
    try {
        sessions_.push_back({std::string(proven), port, std::move(left)});
    } catch (const std::bad_alloc&) {  // then there is nothing to resume
    }
}

std::shared_ptr<const io::secure_session> client_core::take_session(std::string_view proven,
                                                                    std::uint16_t port) noexcept {
    const auto is_of = [&](const kept_session& s) { return s.host == proven && s.port == port; };
    const auto found = std::find_if(sessions_.rbegin(), sessions_.rend(), is_of);
    if (found == sessions_.rend()) return nullptr;
    std::shared_ptr<const io::secure_session> taken = std::move(found->of);
    sessions_.erase(std::next(found).base());
    return taken;
}

std::size_t client_core::idle_connections() const noexcept {
    return idle_.size() + (origins != nullptr ? origins->kept() : 0);
}

void client_core::close_idle() noexcept {
    idle_.clear();
    if (origins != nullptr) origins->close_idle();
}

// Marsaglia's xorshift. It is seeded from the loop's time, so that a client in a simulation repeats
// its numbers.
std::uint64_t client_core::random() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_;
}

// What a client_answer owns. It may outlive the client, but its call must not be read from then.
struct client_opened : io::operation {
    client_opened(client_core& owner, client_request&& r)
        : operation(&arrive),
          hosts(owner.hosts),
          request(std::move(r)),
          call(owner, request, client_call::bodies::by_pieces) {}
    static void arrive(operation* op) noexcept { delete static_cast<client_opened*>(op); }

    const std::shared_ptr<client_hosts> hosts;
    const client_request request;
    client_call call;
};

void client_opened_end::operator()(client_opened* opened) const noexcept {
    io::context& loop = opened->call.loop();
    if (opened->call.finished() || loop.is_current()) {
        delete opened;
    } else {
        loop.post(*opened);
    }
}

client_tasks::opened client_tasks::begin_open(client_core& client, client_request&& r) {
    if (r.sink != nullptr) {
        throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                                "http client: open() takes no sink; read the answer instead");
    }
    return opened(new client_opened(client, std::move(r)));
}

client_call& client_tasks::call_of(client_opened& made) noexcept {
    return made.call;
}

}  // namespace internal

task<std::string_view> client_answer::read() {
    COPPICE_CHECK(opened_ != nullptr,
                  "client_answer::read() was called on an answer that was moved from: use the "
                  "answer that it was moved to");
    const std::string_view piece = co_await opened_->call.read();
    if (piece.empty() && trailers_.empty()) trailers_ = std::move(opened_->call.answer().trailers_);
    co_return piece;
}

}  // namespace coppice::http
