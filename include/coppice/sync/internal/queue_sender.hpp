// queue_sender: async_push and async_pop, made of the operations of a channel.
#pragma once
// The operation of the channel completes with a bool or an optional, never with an error of the
// queue. As a sender, a false or an empty one becomes set_error(conqueue_status::closed), as
// P0260R20 wants it. A coroutine gets the bool or the optional, as P3570R2 wants it.

#include <coppice/exec/as_awaitable.hpp>
#include <coppice/sync/internal/channel_core.hpp>
#include <coppice/token/signature.hpp>

#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coppice {

// The outcome of an operation of a bounded_queue. Source: P0260R20.
enum class conqueue_status { success, empty, full, closed, busy, busy_async };

}  // namespace coppice

namespace coppice::internal {

template <class Rcvr>
class queue_receiver {
public:
    using receiver_concept = execution::receiver_tag;
    explicit queue_receiver(Rcvr rcvr) noexcept : rcvr_(static_cast<Rcvr&&>(rcvr)) {}

    void set_value(bool pushed) && noexcept {
        if (pushed) {
            execution::set_value(static_cast<Rcvr&&>(rcvr_));
        } else {
            execution::set_error(static_cast<Rcvr&&>(rcvr_), conqueue_status::closed);
        }
    }
    template <class T>
    void set_value(std::optional<T> popped) && noexcept {
        if (popped) {
            execution::set_value(static_cast<Rcvr&&>(rcvr_), std::move(*popped));
        } else {
            execution::set_error(static_cast<Rcvr&&>(rcvr_), conqueue_status::closed);
        }
    }
    void set_error(std::error_code error) && noexcept {
        execution::set_error(static_cast<Rcvr&&>(rcvr_), static_cast<std::error_code&&>(error));
    }
    void set_stopped() && noexcept { execution::set_stopped(static_cast<Rcvr&&>(rcvr_)); }
    decltype(auto) get_env() const noexcept { return execution::get_env(rcvr_); }

private:
    Rcvr rcvr_;
};

// Operation is an await_operation; Value is what a sender sends: set_value_t() or set_value_t(T).
template <class Operation, class Value>
class [[nodiscard("await it or connect it: it has not begun")]] queue_sender {
public:
    using sender_concept = execution::sender_tag;
    using keeps_scheduler = void;  // the operation's awaiter brings the task back
    explicit queue_sender(Operation&& operation) noexcept
        : operation_(static_cast<Operation&&>(operation)) {}

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using closed = execution::set_error_t(conqueue_status);
        using error = execution::set_error_t(std::error_code);
        if constexpr ((may_be_stopped<Env> && ...)) {
            return execution::completion_signatures<Value, closed, error,
                                                    execution::set_stopped_t()>();
        } else {
            return execution::completion_signatures<Value, closed, error>();
        }
    }
    template <execution::receiver Rcvr>
    auto connect(Rcvr rcvr) && noexcept {
        return execution::connect(static_cast<Operation&&>(operation_),
                                  queue_receiver<Rcvr>(static_cast<Rcvr&&>(rcvr)));
    }
    template <class Promise>
    auto as_awaitable(Promise& promise) && {
        return execution::as_awaitable(static_cast<Operation&&>(operation_), promise);
    }
    // For coroutines without an await_transform.
    Operation operator co_await() && noexcept { return static_cast<Operation&&>(operation_); }
    // select takes it apart as the operation that it holds.
    using selected_as = Operation;
    auto errors() const noexcept { return operation_.errors(); }
    auto take_initiation() && noexcept {
        return static_cast<Operation&&>(operation_).take_initiation();
    }

private:
    Operation operation_;
};

// The request of a push. Its result is false if the queue is closed.
template <class Core>
struct push_request : send_request<Core> {
    using result = bool;
    static constexpr const char* name = "bounded_queue::push";
    using send_request<Core>::send_request;

    static std::error_code error() noexcept { return {}; }
    bool take() const noexcept { return !this->refused; }
    static bool nothing() noexcept { return false; }
};

// The item of a try_pop, or why there is none; as std::expected, which C++20 does not have.
template <class T>
class pop_outcome {
public:
    explicit pop_outcome(std::optional<T>&& item, conqueue_status error) noexcept
        : item_(std::move(item)), error_(error) {}

    bool has_value() const noexcept { return item_.has_value(); }
    explicit operator bool() const noexcept { return item_.has_value(); }
    // Return the item. Misuse: calling them without an item stops the process.
    T& value() & noexcept { return checked(); }
    T&& value() && noexcept { return std::move(checked()); }
    T& operator*() & noexcept { return checked(); }
    T&& operator*() && noexcept { return std::move(checked()); }
    T* operator->() noexcept { return &checked(); }
    // Returns why there is no item: empty or closed.
    conqueue_status error() const noexcept { return error_; }

private:
    T& checked() noexcept {
        COPPICE_CHECK(item_.has_value(),
                      "value() of a bounded_queue::try_pop() that returned no item: look at "
                      "has_value() first");
        return *item_;
    }
    std::optional<T> item_;
    conqueue_status error_;
};

}  // namespace coppice::internal
