// How connections use the budget of budget.hpp, and what happens when memory runs out.
#include <coppice/base/internal/memory_limit.hpp>
#include <coppice/base/saturating.hpp>

#include "connection.hpp"

#include <malloc.h>
#include <algorithm>
#include <new>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t least_budget = 4 * 1024 * 1024;
constexpr std::size_t room_step = 4096;
// What a request takes while the connection waits for it, besides its bytes: the exchange and
// coroutine frames.
constexpr std::size_t waiting_bytes = sizeof(exchange) + 4096;

}  // namespace

std::size_t default_buffered_bytes() noexcept {
    try {
        return std::max(saturating_cast<std::size_t>(memory_limit() / 4), least_budget);
    } catch (const std::bad_alloc&) {
        return least_budget;
    }
}

// An allocator keeps freed memory between blocks that are in use. Without the trim, a wave of
// half-received bodies would leave the process as large as it was. Cost: a walk over the free
// blocks.
void byte_budget::trim(std::size_t left) noexcept {
    // Relaxed: a count. The exchange lets only one thread trim.
    if (highest_.exchange(left, relaxed) < trimmed_from) return;
#if defined(__GLIBC__)
    ::malloc_trim(0);
#endif
}

// Makes room for `more` bytes at the end of e.input. `whole`: the final size in bytes, 0 if it is
// not known. The room grows with what has arrived, never with what was promised. Returns false if
// the budget is exhausted.
bool connection::make_room(exchange& e, std::size_t more, std::size_t whole) {
    const std::size_t needed = e.input.size() + more;
    if (needed <= e.room) return true;
    std::size_t room = std::max(2 * e.room, room_step);
    if (whole != 0) room = std::min(room, whole);
    room = std::max(room, needed);
    const std::size_t cost = room - e.room + (e.room == 0 ? waiting_bytes : 0);
    if (!reserve(e, cost)) return false;
    e.room = room;
    if (e.input.capacity() < room) {
        std::string larger;  // reserve() of a non-empty string may take twice as much
        larger.reserve(room);
        larger.assign(e.input);
        e.input.swap(larger);
    }
    return true;
}

bool connection::reserve(exchange& e, std::size_t bytes) noexcept {
    e.out_of_room = !loop_.shared.budget.reserve(bytes);
    e.more = true;
    if (!e.out_of_room) e.reserved += bytes;
    return !e.out_of_room;
}

// Returns true if a request with a body of this length may still be received.
bool connection::has_room_for(exchange& e, std::uint64_t length) noexcept {
    const std::uint64_t bytes = saturating_add<std::uint64_t>(length, waiting_bytes);
    e.out_of_room = !loop_.shared.budget.fits(saturating_cast<std::size_t>(bytes));
    return !e.out_of_room;
}

// Called when a request has not arrived completely: the client is gone, or there was no room.
connection::step connection::give_way(exchange& e) {
    if (!std::exchange(e.out_of_room, false)) return step::gone;
    // Gives what has arrived back at once, since the connection may still wait for the client.
    std::string().swap(e.input);
    e.left = {};
    e.budget.give(std::exchange(e.reserved, 0));
    e.room = 0;
    put(e, no_room(e), nullptr);
    return step::last;
}

// Counts the unsent output. Returns false if the connection has to end.
bool connection::reserve_output(exchange& e) noexcept {
    const std::size_t bytes = e.output.size() - e.sent;
    if (bytes <= room_step) return true;
    if (!loop_.shared.budget.reserve_last(bytes)) return false;
    e.more = true;
    e.reserved += bytes;
    e.reserved_output += bytes;
    return true;
}

void connection::give_back(exchange& e, std::size_t& part) noexcept {
    const std::size_t bytes = std::exchange(part, 0);
    if (bytes == 0) return;
    e.reserved -= bytes;
    e.budget.give(bytes);
}

void connection::give_output_back(exchange& e) noexcept {
    give_back(e, e.reserved_output);
}

bool peer_address::reserve_for_body(std::size_t bytes) noexcept {
    if (!of_.budget.reserve(bytes)) return false;
    of_.more = true;
    of_.reserved += bytes;
    of_.reserved_body += bytes;
    return true;
}

bool internal::reserve_for_body(const request& r, std::size_t bytes) noexcept {
    if (r.origin_ == nullptr || r.origin_->peer == nullptr) return true;  // no server's
    return r.origin_->peer->reserve_for_body(bytes);
}

// Called when a buffer of the loop has been put into e.ahead. It counts even if it does not fit,
// since it exists already and there are few. The count belongs to the loop, like e.ahead, since a
// handler may run on the pool.
void connection::reserve_ahead(exchange& e) noexcept {
    const std::size_t bytes = e.ahead.count * io::buffer_pool::buffer_bytes;
    if (bytes <= e.reserved_ahead) return;
    e.budget.add(bytes - std::exchange(e.reserved_ahead, bytes));
}

}  // namespace coppice::http
