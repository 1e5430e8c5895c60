// bounded_queue: a channel with the interface of the draft's concurrent queues.
#pragma once

#include <coppice/sync/internal/channel_core.hpp>
#include <coppice/sync/internal/ring_core.hpp>
#include <coppice/sync/internal/queue_sender.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>
#include <coppice/token/block.hpp>

#include <cstddef>
#include <optional>
#include <utility>

namespace coppice {

// The name of conqueue_status until P0260R18.
using conqueue_errc = conqueue_status;

// A bounded queue, first in, first out, for threads and for tasks. It is a channel, with its costs
// and promises; only names and errors are those of the draft. push() and pop() block the thread:
// tasks use async_push() and async_pop(), and must not block the thread that the other side needs.
// Unlike the draft, it takes no allocator, and moving T must not throw; `max_elems` 0 makes a
// rendezvous. Errors of all that copy or construct a T: what its constructors throw; then the queue
// is unchanged. Source: P0260R20.
template <class T>
class bounded_queue : immovable {
    using core_type = internal::ring_core<T>;
    using push_type = internal::push_request<core_type>;
    using pop_type = internal::receive_request<core_type>;

public:
    using value_type = T;

    // Allocates `max_elems` slots. Errors: std::bad_alloc.
    explicit bounded_queue(std::size_t max_elems) : core_(max_elems) {}

    // Returns true if close() was called. Another thread may do so right afterwards.
    bool is_closed() const noexcept { return core_.is_closed(); }
    // Ends pushing: what was pushed is still popped.
    void close() noexcept { core_.close(); }

    // Push. Return false if the queue is closed. Block: until there is a slot, or it is closed.
    bool push(const T& x) { return emplace(x); }
    bool push(T&& x) { return emplace(std::move(x)); }
    template <class... Args>
    bool emplace(Args&&... args) {
        return internal::initiate_wait(push_type(core_, T(std::forward<Args>(args)...)), block);
    }
    // Push if that needs no wait. Return success, full, or closed. If full or closed, an r-value is
    // untouched. Block: never.
    conqueue_status try_push(const T& x) { return try_emplace(x); }
    conqueue_status try_push(T&& x) noexcept { return status_of(core_.try_send(x)); }
    template <class... Args>
    conqueue_status try_emplace(Args&&... args) {
        return try_push(T(std::forward<Args>(args)...));
    }
    // Push. As senders: nothing, or the error conqueue_status::closed. Awaited: true, or false.
    auto async_push(const T& x) { return async_emplace(x); }
    auto async_push(T&& x) noexcept { return async_emplace(std::move(x)); }
    template <class... Args>
    auto async_emplace(Args&&... args) {
        auto operation =
            internal::initiate_wait(push_type(core_, T(std::forward<Args>(args)...)), use_await);
        return internal::queue_sender<decltype(operation), execution::set_value_t()>(
            std::move(operation));
    }

    // Pops. Returns nothing if the queue is closed and drained. Blocks: until there is an item, or
    // it is closed.
    std::optional<T> pop() { return internal::initiate_wait(pop_type(core_), block); }
    // Pops if that needs no wait. Returns the item, or `empty` or `closed` as its error(). Blocks:
    // never.
    auto try_pop() noexcept {
        std::optional<T> item;
        const bool ended = core_.try_receive(item);
        return internal::pop_outcome<T>(std::move(item),
                                        ended ? conqueue_status::closed : conqueue_status::empty);
    }
    // Pops. As a sender: a T, or the error conqueue_status::closed. Awaited: a std::optional<T>.
    auto async_pop() noexcept {
        auto operation = internal::initiate_wait(pop_type(core_), use_await);
        return internal::queue_sender<decltype(operation), execution::set_value_t(T)>(
            std::move(operation));
    }

private:
    static conqueue_status status_of(internal::send_outcome outcome) noexcept {
        switch (outcome) {
            case internal::send_outcome::sent:
                return conqueue_status::success;
            case internal::send_outcome::full:
                return conqueue_status::full;
            case internal::send_outcome::closed:
                break;
        }
        return conqueue_status::closed;
    }

    core_type core_;
};

}  // namespace coppice
