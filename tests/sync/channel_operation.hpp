// An operation of a channel that a test starts, stops, and asks how it ended.
#pragma once

#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/stop_token.hpp>

#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace coppice::test {

enum class channel_end { pending, value, error, stopped };

// Owns the operation of a sender whose value is `Value`, or nothing if that is std::monostate.
template <class Value, class Sender>
class channel_operation {
    struct receiver {
        using receiver_concept = execution::receiver_tag;
        channel_operation* self;
        void set_value() && noexcept { self->end(channel_end::value); }
        void set_value(Value value) && noexcept {
            self->value_.emplace(std::move(value));
            self->end(channel_end::value);
        }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            if constexpr (std::is_same_v<std::remove_cvref_t<Error>, std::error_code>)
                self->error_ = error;
            self->end(channel_end::error);
        }
        void set_stopped() && noexcept { self->end(channel_end::stopped); }
        auto get_env() const noexcept {
            return execution::prop(get_stop_token, self->stop_.get_token());
        }
    };

public:
    explicit channel_operation(Sender&& sender)
        : operation_(execution::connect(std::move(sender), receiver{this})) {}
    channel_operation(const channel_operation&) = delete;
    ~channel_operation() { wait(); }

    channel_operation& start() {
        started_ = true;
        execution::start(operation_);
        return *this;
    }
    void stop() { stop_.request_stop(); }
    channel_end how() const { return end_.load(internal::acquire); }
    bool pending() const { return how() == channel_end::pending; }
    std::error_code error() const { return error_; }
    // Returns the value. The operation has ended with one.
    Value& value() { return *value_; }
    void wait() const {
        while (started_ && pending()) std::this_thread::yield();
    }

private:
    void end(channel_end how) noexcept { end_.store(how, internal::release); }

    inplace_stop_source stop_;
    std::optional<Value> value_;
    std::error_code error_;
    internal::atomic<channel_end> end_{channel_end::pending};
    bool started_ = false;
    decltype(execution::connect(std::declval<Sender>(), std::declval<receiver>())) operation_;
};
template <class Value, class Sender>
channel_operation<Value, Sender> operation_of(Sender&& sender) {
    return channel_operation<Value, Sender>(std::move(sender));
}

}  // namespace coppice::test
