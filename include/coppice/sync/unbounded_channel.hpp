// unbounded_channel: a queue between tasks whose senders never wait; its memory grows instead.
#pragma once

#include <coppice/sync/internal/channel_core.hpp>
#include <coppice/sync/internal/item_blocks.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace coppice {

// Carries objects of the type T, first in, first out, from code that cannot wait to tasks that
// receive. There is no back-pressure: if senders are faster for long, memory runs out. Prefer
// channel, unless the sender must not wait.
//
// Receivers are those of a channel: served first come, first served; stopped without having taken
// anything; continued on their own schedulers.
//
// Threads: any. Blocks: never, except for the few instructions that another thread needs to change
// the queue. Cost: an operation that need not wait is two locked instructions and two moves of T.
// Memory comes in blocks of 2 KiB or 8 items, the larger. Received blocks are used again, so the
// steady state allocates nothing; shrink_to_fit() gives them back. T, lifetime, and misuse: as with
// channel. Source: ours.
template <class T>
class unbounded_channel : immovable {
    using items_type = internal::item_blocks<T>;
    using core_type = internal::channel_core<T, items_type>;

public:
    using value_type = T;

    // Allocates nothing yet.
    unbounded_channel() noexcept = default;

    // Sends. Returns false if the channel is closed. Errors: std::bad_alloc; then nothing was sent.
    // May resume a receiver in place.
    bool send(T value) {
        for (;;) {
            const internal::send_outcome outcome = core_.try_send(value);
            if (outcome != internal::send_outcome::full)
                return outcome == internal::send_outcome::sent;
            add_block();
        }
    }
    // Waits for an item. Result: std::optional<T>, empty if the channel is closed and drained.
    // Errors: a stop, and nothing else.
    template <class Token = use_await_t>
    [[nodiscard]] auto receive(Token&& token = Token()) {
        return internal::initiate_wait(internal::receive_request<core_type>(core_),
                                       static_cast<Token&&>(token));
    }
    // Returns the oldest item, or nothing if there is none now. Blocks: never.
    std::optional<T> try_receive() noexcept {
        std::optional<T> item;
        core_.try_receive(item);
        return item;
    }
    // Ends sending: what was sent is still received, and then receive() gives an empty optional.
    void close() noexcept { core_.close(); }
    // Returns true if close() was called. Another thread may do so right afterwards.
    bool is_closed() const noexcept { return core_.is_closed(); }
    // Returns the number of items that wait. May be stale.
    std::size_t size() const noexcept { return core_.size(); }
    // Frees the blocks that hold no item; without items, all of them.
    void shrink_to_fit() noexcept {
        core_.queue().lock();
        auto* const spare = core_.items().take_spare();
        core_.queue().unlock();
        items_type::delete_all(spare);
    }

private:
    [[gnu::noinline]] void add_block() {
        auto added = std::make_unique<typename items_type::block>();
        core_.queue().lock();
        core_.items().add(std::move(added));
        core_.queue().unlock();
    }

    core_type core_;
};

}  // namespace coppice
