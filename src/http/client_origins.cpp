// The servers of client_origins.hpp, and how a client's request joins a connection of theirs.
#include "client_origins.hpp"

#include <coppice/base/saturating.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/http/internal/client_call.hpp>

#include <algorithm>
#include <new>
#include <utility>

#include "client_connection.hpp"
#include "client_session.hpp"

namespace coppice::http {

using namespace internal;

client_origin::client_origin(client_origins& a, const client_target& target)
    : all(&a),
      to(target.to != nullptr ? *target.to : io::endpoint()),
      name(target.name),
      port(target.port),
      proven(target.proven) {}

bool client_origin::leads_to(const client_target& target) const noexcept {
    if (proven != target.proven) return false;
    if (target.name.empty()) return name.empty() && to == *target.to;
    return name == target.name && port == target.port;
}

client_session* client_origin::usable() noexcept {
    const auto newest = [this](auto is_good) {
        const auto found = std::find_if(sessions.rbegin(), sessions.rend(), is_good);
        return found == sessions.rend() ? nullptr : *found;
    };
    client_session* const free = newest([](const auto* s) { return s->takes_now(); });
    return free != nullptr ? free : newest([](const auto* s) { return s->is_usable(); });
}

void client_origin::grant_on(client_session* made) noexcept {
    while (client_joiner* const first = waiting.front()) {
        client_call& call = *first->call;
        client_session* const session = made != nullptr ? made : usable();
        if (session != nullptr) {
            if (made != nullptr ? !made->has_room() : !session->takes_now()) return;
            try {
                call.connection_ = session->open(call.target());
            } catch (const std::bad_alloc&) {
                first->error = std::make_error_code(std::errc::not_enough_memory);
            }
        } else if (!speaks_only_http1) {
            if (is_deciding) return;
            is_deciding = true;
            call.deciding_ = this;
        }
        waiting.erase(*first);
        first->is_told = true;
        // Its task goes on in a later turn. nullptr: it is leaving by itself.
        if (call.waiting_ != nullptr) call.waiting_->request_stop();
    }
}

void client_origin::begin(client_session& made) noexcept {
    speaks_only_http1 = false;
    sessions.push_back(&made);
    made.run_later();
}

void client_origin::speak_http1() noexcept {
    is_deciding = false;
    speaks_only_http1 = true;
    grant();
}

void client_origin::fail(std::error_code error, bool is_lost) noexcept {
    is_deciding = false;
    if (usable() != nullptr) {  // of a call that did not decide
        grant();
        return;
    }
    while (client_joiner* const first = waiting.pop_front()) {
        first->error = error;
        first->is_lost = is_lost;
        first->is_told = true;
        if (first->call->waiting_ != nullptr) first->call->waiting_->request_stop();
    }
}

void client_origin::give_up_deciding() noexcept {
    is_deciding = false;
    grant();
}

void client_origin::left(const client_session& s) noexcept {
    std::erase(sessions, &s);
    grant();
}

bool client_origin::has_news() noexcept {
    return std::ranges::any_of(sessions, [](auto* s) { return s->has_news(); });
}

client_origins::~client_origins() {
    for (const auto& o : each) {
        while (!o->sessions.empty()) o->sessions.back()->leave();
    }
}

client_origin& client_origins::at(const client_target& target) {
    const auto leads_there = [&](const auto& o) { return o->leads_to(target); };
    const auto found = std::ranges::find_if(each, leads_there);
    if (found != each.end()) return **found;
    const bool full = each.size() >= client.options.idle_connections_max;
    std::erase_if(each, [&](const auto& o) {
        const bool known = o->speaks_only_http1 && !full;
        return !known && !o->is_deciding && o->sessions.empty() && o->waiting.empty();
    });
    each.push_back(std::make_unique<client_origin>(*this, target));
    return *each.back();
}

std::size_t client_origins::kept() const noexcept {
    std::size_t n = 0;
    for (const auto& o : each) {
        n += static_cast<std::size_t>(
            std::ranges::count_if(o->sessions, [](const auto* s) { return s->is_kept(); }));
    }
    return n;
}

void client_origins::close_idle() noexcept {
    for (const auto& o : each) {
        for (std::size_t i = o->sessions.size(); i-- != 0;) {
            if (o->sessions[i]->is_idle()) o->sessions[i]->leave();
        }
    }
}

void client_origins::free_place(const client_host& host) noexcept {
    client_session* const oldest = oldest_kept(&host);
    if (oldest != nullptr) oldest->leave();
}

void client_origins::note_unwanted(const client_host& host) noexcept {
    for (const auto& o : each) {
        for (client_session* const s : o->sessions) {
            if (s->host == &host) s->run_later();
        }
    }
}

client_session* client_origins::oldest_kept(const client_host* host) const noexcept {
    client_session* oldest = nullptr;
    for (const auto& o : each) {
        for (client_session* const s : o->sessions) {
            if (!s->is_kept() || (host != nullptr && s->host != host)) continue;
            if (oldest == nullptr || s->used < oldest->used) oldest = s;
        }
    }
    return oldest;
}

// ---- The state queued of a client's request, for a stream --------------------------------------

namespace internal {

// Returns true if the server may speak HTTP/2.
bool client_call::multiplexes() const noexcept {
    const client_options& o = client_.options;
    return o.http2 != nullptr && (!proven_.empty() || o.http2_in_the_clear);
}

client_target client_call::target() const noexcept {
    return {to_, name_, port_, proven_};
}

// Takes a stream of a connection to the server, or waits for one. Without one afterwards, this call
// has to connect.
task<> client_call::join() {
    if (client_.origins->at(target()).speaks_only_http1) co_return;
    release();  // the call that decides may wait for this place
    if (client_.origins->at(target()).has_news()) {
        co_await loop_.get_scheduler().schedule();  // the loop brings it
        if (stopped_) fail(std::make_error_code(std::errc::operation_canceled), "http request");
    }
    client_origin& origin = client_.origins->at(target());
    const time_point oldest = saturating_sub(loop_.now(), client_.options.idle);
    for (std::size_t i = origin.sessions.size(); i-- != 0;) {
        client_session& s = *origin.sessions[i];
        if (s.is_idle() && s.used < oldest) s.leave();
    }
    client_session* const session = origin.usable();
    if (origin.waiting.empty() && session != nullptr && session->takes_now()) {
        connection_ = session->open(target());
        co_return;
    }
    if (session == nullptr && !origin.is_deciding) {
        origin.is_deciding = true;
        deciding_ = &origin;
        co_return;
    }
    state_ = state::queued;
    client_joiner self(*this);
    origin.waiting.push_back(self);
    const scope_exit leave([&] {
        if (self.linked()) origin.waiting.erase(self);
    });
    const auto for_ever = [](io::context& loop) -> task<> {
        co_await loop.get_scheduler().schedule_after(duration::max());
    };
    (void)co_await until_interrupted(for_ever(loop_));
    lost_ = !stopped() && self.is_lost;
    if (stopped_) fail(std::make_error_code(std::errc::operation_canceled), "connect");
    if (self.error) fail(self.error, "connect");
    if (!self.is_told) co_await execution::just_stopped();
}

// Called when this call's connection is ready, and tells what the server speaks. That may have
// changed since another call decided.
void client_call::agree() {
    const secure_link* const link = connection_->link.get();
    if (link != nullptr && !link->speaks_other()) {
        if (deciding_ != nullptr) std::exchange(deciding_, nullptr)->speak_http1();
        return;
    }
    client_origin& origin = deciding_ != nullptr ? *deciding_ : client_.origins->at(target());
    origin.sessions.reserve(origin.sessions.size() + 1);
    client_session* const made = client_session::make(
        *connection_, origin,
        client_.options.http2->connect(link != nullptr, client_.options.limits));
    made->host = std::exchange(host_, nullptr);
    if (std::exchange(deciding_, nullptr) != nullptr) origin.is_deciding = false;
    connection_ = nullptr;
    origin.begin(*made);
    // This call is the first, so that the others do not take all streams.
    const scope_exit others([&] { origin.grant_on(made); });
    connection_ = made->open(target());
}

}  // namespace internal

}  // namespace coppice::http
