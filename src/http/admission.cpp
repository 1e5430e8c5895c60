// The filters of http/admission.hpp.
#include <coppice/http/admission.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/options.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/exec/env.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/http/internal/scan.hpp>
#include <coppice/io/context.hpp>
#include <coppice/sync/semaphore.hpp>

#include "accepting.hpp"
#include "authority.hpp"
#include "request_marks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

response refusal_for(int status, static_text why, std::uint64_t seconds) {
    return response::status(status, why).add("Retry-After", std::to_string(seconds));
}

// Returns whole seconds, rounded up, and at least 1.
std::uint64_t seconds_of(duration wait) noexcept {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 1));
}

// Returns the port of a host, with its colon; "" if it has none.
std::string_view port_part(std::string_view host) noexcept {
    const std::size_t colon = host.rfind(':');
    if (colon == host.npos || host.find(']', colon) != host.npos) return {};
    return host.substr(colon);
}

// Returns the name without the dot that may end a name of DNS.
std::string_view without_dot(std::string_view name) noexcept {
    if (name.ends_with('.')) name.remove_suffix(1);
    return name;
}

// Returns the host without its port, and without the dot that may end a name of DNS.
std::string_view name_part(std::string_view host) noexcept {
    host.remove_suffix(port_part(host).size());
    return without_dot(host);
}

bool is_host_of(std::string_view pattern, std::string_view host) noexcept {
    const std::string_view wanted = port_part(pattern);
    if (!wanted.empty() && wanted != port_part(host)) return false;
    pattern = name_part(pattern);
    host = name_part(host);
    if (!pattern.starts_with("*.")) return equals_ignoring_case(pattern, host);
    pattern.remove_prefix(1);
    return host.size() > pattern.size() &&
           equals_ignoring_case(pattern, host.substr(host.size() - pattern.size()));
}

bool is_name(std::string_view text) noexcept {
    const bool has_empty_label =
        text.starts_with('.') || text.ends_with('.') || text.find("..") != text.npos;
    return !text.empty() && !has_empty_label && std::ranges::all_of(text, [](char c) {
        return is(c, digit_byte) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
               c == '-' || c == '_';
    });
}

bool is_pattern(std::string_view text) noexcept {
    const std::string_view port = port_part(text);
    const std::string_view digits = port.substr(port.empty() ? 0 : 1);
    const bool is_number = !digits.empty() && digits.front() != '0' && fits_port(digits) &&
                           std::ranges::all_of(digits, [](char c) { return is(c, digit_byte); });
    if (!port.empty() && !is_number) return false;
    if (text.starts_with('[')) {
        text.remove_suffix(port.size());
        return text.ends_with(']') && valid_ipv6(text.substr(1, text.size() - 2));
    }
    text = name_part(text);
    if (text.starts_with("*.")) text.remove_prefix(2);
    return is_name(text);
}

}  // namespace

duration request::queued() const noexcept {
    if (origin_ == nullptr || origin_->loop == nullptr) return duration::zero();
    return std::max(origin_->loop->now() - origin_->arrived, duration::zero());
}

// ---- rate_limit --------------------------------------------------------------------------------

// Sets of eight addresses, found by a hash that clients do not know. An address has the time at
// which its bucket is full again: nothing else of a bucket has to be kept.
struct rate_limit::table : immovable {
    struct entry {
        address_counts::address address{};
        time_point full_at = time_point::min();  // min(): the entry is free
    };
    static constexpr std::size_t entries_of_set = 8;
    static constexpr std::size_t locks_max = 64;
    struct alignas(64) lock {
        std::mutex mutex;
    };
    using set = std::array<entry, entries_of_set>;

    explicit table(const rate_limit_options& o)
        : interval(std::max<duration>(
              duration(static_cast<duration::rep>(std::llround(1e9 / o.per_second))), duration(1))),
          tolerance(interval * static_cast<duration::rep>(o.burst - 1)),
          sets(std::bit_ceil(std::max<std::size_t>(o.addresses_max / entries_of_set, 1))) {
        mark_source(false).fill<1>(key);
    }
    std::size_t set_of(const address_counts::address& a) const noexcept {
        std::array<std::uint64_t, 2> words;
        std::memcpy(words.data(), a.data(), sizeof words);
        std::uint64_t secret = 0;
        std::memcpy(&secret, key.data(), sizeof secret);
        std::uint64_t hash = (words[0] ^ secret) * 0x9e3779b97f4a7c15;
        hash = (hash ^ hash >> 32 ^ words[1]) * 0xbf58476d1ce4e5b9;
        hash = (hash ^ hash >> 29 ^ secret) * 0x94d049bb133111eb;
        return static_cast<std::size_t>(hash ^ hash >> 32) & (sets.size() - 1);
    }

    const duration interval;   // between two tokens
    const duration tolerance;  // how far full_at may be ahead of a request that is let in
    std::array<unsigned char, 8> key{};
    std::vector<set> sets;
    std::array<lock, locks_max> locks;
    atomic<std::uint64_t> refused{0};  // nothing depends on its order
};

rate_limit::rate_limit(rate_limit_options o) : exempt_(std::move(o.exempt)) {
    constexpr std::size_t most = std::size_t{1} << 30;
    if (!(o.per_second >= 1e-6 && o.per_second <= 1e9)) {
        throw std::invalid_argument("rate_limit_options::per_second must be 1e-6 to 1e9, got " +
                                    std::to_string(o.per_second));
    }
    check_option("rate_limit_options::burst", o.burst, 1, most);
    check_option("rate_limit_options::addresses_max", o.addresses_max, 1, most);
    if (o.per_second < 1 && static_cast<double>(o.burst) / o.per_second > 1e9) {
        throw std::invalid_argument("rate_limit_options: a full burst takes longer than 30 years");
    }
    table_ = std::make_unique<table>(o);
}

rate_limit::~rate_limit() = default;

duration rate_limit::take(const io::endpoint& client, time_point now) const noexcept {
    if (exempt_.contains(client)) return duration::zero();
    const address_counts::address address = address_counts::of(client);
    const std::size_t index = table_->set_of(address);
    const std::lock_guard lock(table_->locks[index % table::locks_max].mutex);
    table::set& set = table_->sets[index];
    table::entry* found = &set.front();
    for (table::entry& e : set) {
        if (e.full_at != time_point::min() && e.address == address) {
            found = &e;
            break;
        }
        if (e.full_at < found->full_at) found = &e;
    }
    if (found->full_at == time_point::min() || found->address != address) {
        *found = {address, now};
    }
    const time_point from = std::max(found->full_at, now);
    if (from - now > table_->tolerance) {
        // Relaxed: a count.
        table_->refused.fetch_add(1, relaxed);
        return from - now - table_->tolerance;
    }
    found->full_at = from + table_->interval;
    return duration::zero();
}

std::optional<response> rate_limit::before(const request& r) const {
    const duration wait = take(r.peer(), r.loop().now());
    if (wait == duration::zero()) return std::nullopt;
    return refusal_for(429, "too many requests from this address", seconds_of(wait));
}

std::uint64_t rate_limit::refused() const noexcept {
    return table_->refused.load(relaxed);  // relaxed: a count
}

// ---- concurrency_limit -------------------------------------------------------------------------

namespace {

constexpr std::size_t permits_max = std::size_t{1} << 60;  // what a semaphore can count

}  // namespace

struct concurrency_limit::state : immovable {
    explicit state(const concurrency_limit_options& o) noexcept
        : turns_max(std::min<std::size_t>(o.in_flight_max, permits_max)),
          places_max(o.waited_max <= duration::zero()
                         ? 0
                         : std::min<std::size_t>(o.waiting_max, permits_max)),
          waited_max(o.waited_max),
          retry_after(seconds_of(o.retry_after)) {}

    // Waits until the request may go on, and continues where its handler runs. Gives nothing if
    // there is no place to wait or the time is over.
    task<async_semaphore::permit> wait(const request& r) {
        std::optional<async_semaphore::permit> place = places.try_acquire();
        if (!place) co_return async_semaphore::permit();
        async_semaphore::permit turn = co_await execution::upon_error(
            execution::write_env(
                execution::timeout(turns.acquire(), execution::time_span(waited_max)),
                execution::prop(execution::get_timed_scheduler, r.loop().get_scheduler())),
            [](const auto&) noexcept { return async_semaphore::permit(); });
        place.reset();
        co_await next_handler::queue_at_home(r);
        co_return turn;
    }

    const std::size_t turns_max;
    const std::size_t places_max;
    const duration waited_max;
    const std::uint64_t retry_after;
    async_semaphore turns{turns_max};
    async_semaphore places{places_max};
    atomic<std::uint64_t> refused{0};  // nothing depends on its order
};

concurrency_limit::concurrency_limit(std::size_t in_flight_max, std::chrono::seconds retry_after)
    : concurrency_limit(
          concurrency_limit_options{.in_flight_max = in_flight_max, .retry_after = retry_after}) {}

concurrency_limit::concurrency_limit(const concurrency_limit_options& o) {
    if (o.in_flight_max == 0) {
        throw std::invalid_argument("concurrency_limit: in_flight_max must be at least 1, got 0");
    }
    state_ = std::make_shared<state>(o);
}

task<response> concurrency_limit::operator()(request& r, next_handler next) const {
    state* const of = state_.get();
    std::optional<async_semaphore::permit> turn = of->turns.try_acquire();
    if (!turn && of->places_max != 0) turn = co_await of->wait(r);
    if (!turn || !*turn) {
        of->refused.fetch_add(1, relaxed);  // relaxed: a count
        co_return refusal_for(503, "too many of these requests are in flight", of->retry_after);
    }
    co_return co_await next();
}

std::size_t concurrency_limit::in_flight() const noexcept {
    return state_->turns_max - state_->turns.available();
}
std::size_t concurrency_limit::waiting() const noexcept {
    return state_->places_max - state_->places.available();
}
std::uint64_t concurrency_limit::refused() const noexcept {
    return state_->refused.load(relaxed);  // relaxed: a count
}

// ---- load_shedding -----------------------------------------------------------------------------

// Each loop and each pool has a queue of its own, and so an entry of its own.
//
//   stands: false -> true   in a period, each request had waited for longer than least_max
//           true -> false   in a period, none had waited for longer than standing_max; or no
//                           request came for a period
//
// Threads judge requests at the same time. Everything is relaxed: the numbers publish nothing, and
// a request that is counted in the period before its own changes no more than one decision.
struct load_shedding::state : immovable {
    struct alignas(64) queue {
        atomic<const void*> of{nullptr};  // the loop or pool; set once
        atomic<duration::rep> end{0};     // of the period
        atomic<duration::rep> least{0};   // waited by a request of this period
        atomic<duration::rep> most{0};
        atomic<bool> stands{false};
    };
    static constexpr std::size_t queues_max = 64;  // further ones share the entries

    state(duration most, std::chrono::seconds later) noexcept
        : queued_max(most), retry_after(seconds_of(later)) {}

    queue& queue_of(const void* home) noexcept {
        const std::size_t first = std::hash<const void*>()(home) / alignof(std::max_align_t);
        for (std::size_t i = 0; i != queues_max; ++i) {
            queue& q = queues[(first + i) % queues_max];
            const void* of = q.of.load(relaxed);
            if (of == nullptr && q.of.compare_exchange_strong(of, home, relaxed, relaxed)) return q;
            if (of == home) return q;
        }
        return queues[first % queues_max];
    }

    // A request that followed the one before it on its connection has skipped the queue: it does
    // not count for what each request has waited.
    bool is_too_late(queue& q, duration queued, bool followed, time_point now) noexcept {
        const duration::rep waited = queued.count();
        const duration::rep least_waited = followed ? duration::max().count() : waited;
        duration::rep end = q.end.load(relaxed);
        const duration::rep time = now.time_since_epoch().count();
        if (time >= end && q.end.compare_exchange_strong(end, saturating_add(time, period.count()),
                                                         relaxed, relaxed)) {
            const bool stood = q.stands.load(relaxed);
            const duration::rep most = q.most.exchange(waited, relaxed);
            const duration::rep least = q.least.exchange(least_waited, relaxed);
            const bool all_waited = least > least_max.count() && least != duration::max().count();
            const bool stands = stood ? most > standing_max.count() : all_waited;
            q.stands.store(stands && saturating_sub(time, end) < period.count(), relaxed);
        } else {
            lower_to(q.least, least_waited);
            raise_to(q.most, waited);
        }
        return queued > (q.stands.load(relaxed) ? standing_max : queued_max);
    }
    static void lower_to(atomic<duration::rep>& least, duration::rep to) noexcept {
        duration::rep seen = least.load(relaxed);
        while (to < seen && !least.compare_exchange_weak(seen, to, relaxed, relaxed)) {
        }
    }
    static void raise_to(atomic<duration::rep>& most, duration::rep to) noexcept {
        duration::rep seen = most.load(relaxed);
        while (to > seen && !most.compare_exchange_weak(seen, to, relaxed, relaxed)) {
        }
    }

    const duration queued_max;
    const duration period = std::max(queued_max, duration(1));
    const duration standing_max = std::min(queued_max, queued_max / 10);
    const duration least_max = std::min(queued_max, queued_max / 20);
    const std::uint64_t retry_after;
    std::array<queue, queues_max> queues;
    atomic<std::uint64_t> refused{0};  // nothing depends on its order
};

load_shedding::load_shedding(duration queued_max, std::chrono::seconds retry_after)
    : state_(std::make_shared<state>(queued_max, retry_after)) {}

task<response> load_shedding::operator()(request& r, next_handler next) const {
    if (const next_handler::place at = next_handler::place_of(r); at.home != nullptr) {
        state& s = *state_;
        if (s.is_too_late(s.queue_of(at.home), r.queued(), at.followed, r.loop().now())) {
            s.refused.fetch_add(1, relaxed);  // relaxed: a count
            co_return refusal_for(503, "the server has too much to do", s.retry_after);
        }
    }
    co_return co_await next();
}

std::uint64_t load_shedding::refused() const noexcept {
    return state_->refused.load(relaxed);  // relaxed: a count
}

// ---- allowed_hosts -----------------------------------------------------------------------------

allowed_hosts::allowed_hosts(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {
    if (hosts_.empty()) throw std::invalid_argument("allowed_hosts: the list has no host");
    for (const std::string& h : hosts_) {
        if (!is_pattern(h)) {
            throw std::invalid_argument("allowed_hosts: '" + h +
                                        "' is no host, like example.org, *.example.org, or "
                                        "[::1]:8080, with a port from 1 to 65535 or none");
        }
    }
}

bool allowed_hosts::contains(std::string_view host) const noexcept {
    return std::ranges::any_of(hosts_, [&](const auto& h) { return is_host_of(h, host); });
}

std::optional<response> allowed_hosts::before(const request& r) const {
    const std::string_view host = r.head().host();
    const std::optional<std::string_view> field = r.find("Host");
    if (!host.empty() && contains(host) && (!field || contains(*field))) return std::nullopt;
    return response::status(421, "this server does not answer for that host");
}

// ---- named_host --------------------------------------------------------------------------------

std::optional<response> named_host::before(const request& r) const {
    const io::agreed_security* const agreed = r.security();
    if (agreed == nullptr || agreed->host.empty()) return std::nullopt;
    const auto is_named = [&](std::string_view host) {
        return equals_ignoring_case(without_dot(agreed->host), name_part(host));
    };
    const std::string_view host = r.head().host();
    const std::optional<std::string_view> field = r.find("Host");
    if ((host.empty() || is_named(host)) && (!field || is_named(*field))) return std::nullopt;
    return response::status(421, "this connection is for another host");
}

}  // namespace coppice::http
