// initiate: makes an operation of a loop of a request and any completion token.
#pragma once
// A request is one kind of operation. Request::arguments is a small value; a Request is constructed
// from it when the operation starts, and stays where it is until it has ended:
//
//   bool begin(inplace_stop_token, time_point deadline) noexcept
//                             any thread; true: it has ended, completed() will not be called
//   virtual void completed() noexcept            otherwise, once, on the loop
//   std::error_code error(); value_type take()   the outcome, then
//   bool stopped()                               it ended because it was told to
//   context& owner()                             whose loop completes it; may be protected
//   arguments::owner, ::file.owner or ::target->owner()    the same, before it is constructed
//   static constexpr const char* name            for messages

#include <coppice/base/clock.hpp>
#include <coppice/base/internal.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/token/transform.hpp>

namespace coppice::io {

template <class Value>
struct request_results {
    using completion_type = completion<Value>;
    using signature_type = void(std::error_code, Value);
};
template <>
struct request_results<void> {
    using completion_type = completion<>;
    using signature_type = void(std::error_code);
};

namespace internal {

// The loop of an operation that has not begun.
template <class Arguments>
auto* loop_of(const Arguments& arguments) noexcept {
    if constexpr (requires { arguments.file.owner; }) {
        return arguments.file.owner;
    } else if constexpr (requires { arguments.target->owner(); }) {
        return &arguments.target->owner();
    } else {
        return arguments.owner;
    }
}

}  // namespace internal

// What such an operation says as a sender: where timers are, for timeout where nobody else says it.
template <class Loop>
class loop_attributes {
public:
    explicit loop_attributes(Loop* loop) noexcept : loop_(loop) {}
    auto query(execution::get_timed_scheduler_t) const noexcept { return loop_->get_scheduler(); }

private:
    Loop* loop_;
};

// Before it is called: the arguments. Afterwards: the request, in place, until it has ended.
template <class Request>
class request_initiation {
    using arguments_type = typename Request::arguments;
    using results = request_results<typename Request::value_type>;
    using completion_type = typename results::completion_type;

    class running final : public Request {
    public:
        running(const arguments_type& of, completion_type done) noexcept
            : Request(of), done_(done) {}
        // Last of all: ends this, and the memory that it is in may be gone.
        void deliver() noexcept {
            completion_type done = done_;
            const std::error_code error = Request::error();
            if (Request::stopped()) done.tell_stopped();
            if constexpr (std::is_void_v<typename Request::value_type>) {
                this->~running();
                std::move(done)(error);
            } else {
                typename Request::value_type value = Request::take();
                this->~running();
                std::move(done)(error, static_cast<typename Request::value_type&&>(value));
            }
        }

        auto& loop() const noexcept { return Request::owner(); }

    private:
        void completed() noexcept override { deliver(); }
        completion_type done_;
    };

public:
    static constexpr const char* name = Request::name;

    explicit request_initiation(const arguments_type& arguments) noexcept : arguments_(arguments) {}
    request_initiation(const request_initiation& other) noexcept : arguments_(other.arguments_) {}

    void operator()(completion_type done) noexcept {
        const internal::completion_env env = execution::get_env(done);
        running& request = request_.construct(arguments_, done);
        loop_ = &request.loop();
        if (request.begin(env.query(get_stop_token),
                          static_cast<internal::time_point>(env.query(execution::get_deadline)))) {
            request.deliver();
        }
    }

    auto get_env() const noexcept { return loop_attributes(internal::loop_of(arguments_)); }

    // Waits for the operation; runs the loop meanwhile if nobody else does.
    void drive(block_latch& done) noexcept { loop_->drive(done); }

private:
    using loop_type = std::remove_reference_t<decltype(std::declval<const running&>().loop())>;

    arguments_type arguments_;
    loop_type* loop_ = nullptr;
    manual_lifetime<running> request_;
};

// Threads: any. Blocks, errors, cost: as the token says.
template <class Request, class Token>
auto initiate(const typename Request::arguments& arguments,
              Token&& token) noexcept(nothrow_token<Token>) {
    using results = request_results<typename Request::value_type>;
    return completion_token_transform<typename results::signature_type>(
        static_cast<Token&&>(token), request_initiation<Request>(arguments));
}

}  // namespace coppice::io
