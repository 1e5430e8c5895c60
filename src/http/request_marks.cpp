// Making the marks of request_marks.hpp, from what the client and trusted proxies send.
#include "request_marks.hpp"

#include "connection.hpp"
#include "hexadecimal.hpp"

#include <sys/random.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstring>

namespace coppice::http {

using namespace internal;

namespace {

// No other byte can end a field of a log, or mean something to a shell.
bool is_id_byte(char c) noexcept {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_letter || (c >= '0' && c <= '9') ||
           std::string_view("-_.:+/=@~").find(c) != std::string_view::npos;
}

// Returns the value of a field that was sent exactly once.
std::optional<std::string_view> only_value(const request_head& head,
                                           std::string_view name) noexcept {
    std::optional<std::string_view> found;
    for (const field& f : head.fields()) {
        if (!equals_ignoring_case(f.name, name)) continue;
        if (found) return std::nullopt;
        found = f.value;
    }
    return found;
}

}  // namespace

mark_source::mark_source(bool repeatable) noexcept {
    if (repeatable || ::getrandom(&key_, sizeof key_, GRND_NONBLOCK) == sizeof key_) return;
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    key_ = static_cast<std::uint64_t>(now) ^ static_cast<std::uint64_t>(::getpid()) << 48;
}

// Each step is a bijection, so that different counts give different numbers (the finalizer of
// splitmix64).
std::uint64_t mark_source::next() noexcept {
    for (;;) {
        // Relaxed: a count.
        std::uint64_t word = key_ + count_.fetch_add(1, relaxed) * 0x9e3779b97f4a7c15;
        word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
        word = (word ^ word >> 27) * 0x94d049bb133111eb;
        word ^= word >> 31;
        if (word != 0) return word;  // a span of zeros is none
    }
}

void mark_source::put(std::uint64_t word, unsigned char* to) noexcept {
    std::memcpy(to, &word, sizeof word);
}

std::string_view request_marks::id(const request_head* head) noexcept {
    const std::lock_guard lock(mutex_);
    make(head);
    return {id_.data(), id_bytes_};
}

trace_context request_marks::trace(const request_head* head) noexcept {
    const std::lock_guard lock(mutex_);
    make(head);
    return trace_;
}

std::optional<trace_context> request_marks::parent(const request_head* head) noexcept {
    const std::lock_guard lock(mutex_);
    make(head);
    return has_parent_ ? std::optional(parent_) : std::nullopt;
}

// Called with the lock.
void request_marks::make(const request_head* head) noexcept {
    if (made_) return;
    made_ = true;
    if (!of_.more) of_.more = true;  // on the pool it is set already
    mark_source& source = of_.owner->marks();
    if (head == nullptr || !take_id(*head)) {
        std::array<unsigned char, 16> number;
        source.fill<2>(number);
        id_bytes_ = static_cast<std::size_t>(write_digits(number, id_.data()) - id_.data());
    }
    std::optional<trace_context> sent;
    if (head != nullptr) {
        if (const auto text = only_value(*head, "traceparent")) sent = trace_context::parse(*text);
    }
    has_parent_ = sent.has_value();
    parent_ = sent.value_or(trace_context());
    trace_ = parent_;
    if (!has_parent_) source.fill<2>(trace_.trace);
    source.fill<1>(trace_.span);
}

// Takes the id that a trusted proxy has sent. Returns false if there is none, or it is no id.
bool request_marks::take_id(const request_head& head) noexcept {
    const address_set& proxies = of_.owner->trusted().from;
    if (proxies.empty()) return false;
    const std::optional<std::string_view> sent = only_value(head, "X-Request-Id");
    if (!sent || sent->empty() || sent->size() > id_bytes_max) return false;
    if (!std::ranges::all_of(*sent, is_id_byte)) return false;
    if (!proxies.contains(of_.address.get())) return false;
    std::ranges::copy(*sent, id_.data());
    id_bytes_ = sent->size();
    return true;
}

// Return nothing for a request that came from no server.
std::string_view request::id() const noexcept {
    if (origin_ == nullptr || origin_->marks == nullptr) return {};
    return origin_->marks->id(head_);
}

trace_context request::trace() const noexcept {
    if (origin_ == nullptr || origin_->marks == nullptr) return {};
    return origin_->marks->trace(head_);
}

}  // namespace coppice::http
