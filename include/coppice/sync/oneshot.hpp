// oneshot: one value from one task to another.
#pragma once

#include <coppice/sync/internal/channel_core.hpp>
#include <coppice/sync/internal/single_item.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>

#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coppice {

// Hands over one object of the type T, for example the answer to a question that went through a
// channel. The value lies inside the object until it is received. A receive that is stopped, or
// ends with an error, has taken nothing; another one may get the value. Of several receivers, the
// oldest gets it.
//
// Threads: any. Blocks: never, except for the few instructions that another thread needs to change
// the queue. Cost: two locked instructions and two moves of T on each side; no allocation.
// T: moving and destroying it must not throw; it is moved while the object is locked. A default
// constructor that does not throw is needed by every way to receive but three: an await in a task,
// a branch of select, and try_receive().
// Lifetime: outlives its operations. A receiver that has the value may destroy the object, if no
// other operation uses it.
// Misuse: destroying it while an operation waits stops the process. Spins: as a small channel.
// Source: ours; tokio's oneshot.
template <class T>
class oneshot : immovable {
    using core_type = internal::channel_core<T, internal::single_item<T>>;
    struct request;

public:
    using value_type = T;

    oneshot() noexcept = default;

    // Sends the value. Returns false if one was sent already, or after close(). May resume a
    // receiver in place.
    bool send(T value) noexcept { return core_.send_last(value); }
    // Waits for the value. Result: T. Errors: std::errc::broken_pipe if it can never come, because
    // it was received already, or close() came first. With an error, tokens that do not throw get a
    // T().
    template <class Token = use_await_t>
    [[nodiscard]] auto receive(Token&& token = Token()) {
        return internal::initiate_wait(request(core_), static_cast<Token&&>(token));
    }
    // Returns the value if it was sent and not received yet, else nothing. Blocks: never.
    std::optional<T> try_receive() noexcept {
        std::optional<T> value;
        core_.try_receive(value);
        return value;
    }
    // Says that no value will come: receivers fail, now and later. A value that was sent stays.
    void close() noexcept { core_.close(); }
    // Returns true if nothing can be sent: a value was sent, or close() was called.
    bool is_closed() const noexcept { return core_.is_closed(); }

private:
    core_type core_;
};

template <class T>
struct oneshot<T>::request : internal::receive_request_base<core_type> {
    using result = T;
    static constexpr const char* name = "oneshot::receive";
    using internal::receive_request_base<core_type>::receive_request_base;

    std::error_code error() const noexcept {
        return this->place ? std::error_code() : internal::channel_is_closed();
    }
    T take() noexcept { return std::move(*this->place); }
    static T nothing() noexcept { return T(); }
};

}  // namespace coppice
