// wait_initiation: a wait as an operation that takes any completion token.
#pragma once
// In a task, the await is a wait_awaiter. For every other token and coroutine, the wait lies in the
// token's state, and the thread that ends it completes it: now, or if it is already completing a
// wait, when that completion returns.

#include <coppice/base/lifetime.hpp>
#include <coppice/sync/internal/blocked_pace.hpp>
#include <coppice/sync/internal/wait.hpp>
#include <coppice/sync/internal/wait_awaiter.hpp>
#include <coppice/token/completion.hpp>
#include <coppice/token/internal/code_of.hpp>
#include <coppice/token/internal/inline_start.hpp>
#include <coppice/token/transform.hpp>

#include <exception>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coppice::internal {

// True for the operations of a channel, whose other side may be about to meet them.
template <class Request>
concept looks_when_blocked = requires(Request request) { request.core->looks_when_blocked; };

// The exception that take() threw, for tokens that rethrow it. Other tokens get its error code.
template <bool may_throw>
class kept_exception {
public:
    std::exception_ptr exception() const noexcept { return exception_; }

protected:
    std::exception_ptr exception_;
};
template <>
class kept_exception<false> {};

template <class Request>
class wait_initiation : public kept_exception<take_may_throw<Request>> {
public:
    static constexpr const char* name = Request::name;
    using keeps_scheduler = void;  // its awaiter brings the task back
    using request_type = Request;

    explicit wait_initiation(Request&& request) noexcept
        : request_(static_cast<Request&&>(request)) {}
    wait_initiation(wait_initiation&& other) noexcept
        : kept_exception<take_may_throw<Request>>(),
          request_(static_cast<Request&&>(other.request_)),
          tried_(other.tried_) {}

    // For a thread that blocks (block.hpp). Without the wait and the thread's state, which a ready
    // operation does not need.
    bool ready() noexcept {
        tried_ = true;
        return try_before_wait(request_);
    }
    std::error_code error() noexcept { return request_.error(); }
    typename Request::result take() noexcept(!take_may_throw<Request>) { return request_.take(); }
    typename Request::result nothing() noexcept { return request_.nothing(); }

    // Begins with a completion of a token's state.
    template <class Completion>
    void operator()(Completion completion) noexcept {
        const completion_env env = completion.get_env();
        if (!tried_ && !env.query(get_stop_token).stop_requested() && try_before_wait(request_)) {
            complete<Completion>(request_, request_.error());
            return;
        }
        if constexpr (looks_when_blocked<Request>)
            meets_often_ = blocked_pace::meets_often(request_.core->capacity());
        wait_.construct(static_cast<Request&&>(request_), &ended<Completion>, *this);
        if (wait_.get().begin(env)) deliver<Completion>();
    }
    // Returns the awaiter of a task.
    template <class Errors, has_task_context Promise>
    auto await_in(Promise& promise, Errors errors) noexcept {
        return wait_awaiter<Request, Errors, Promise>(static_cast<Request&&>(request_), errors,
                                                      promise);
    }
    // Called by a thread that blocks, until the operation has completed.
    void drive(block_latch& done) noexcept
        requires looks_when_blocked<Request>
    {
        if (done.is_set()) return;
        if (meets_often_) blocked_pace::look_in_this_thread(done);
        done.wait();
    }
    Request take_request() && noexcept { return static_cast<Request&&>(request_); }

private:
    struct kept_wait : wait<Request> {
        kept_wait(Request&& wanted, typename wait<Request>::function* ended_function,
                  wait_initiation& initiation) noexcept
            : wait<Request>(static_cast<Request&&>(wanted), ended_function), owner(initiation) {}
        wait_initiation& owner;
    };

    template <class Completion>
    static void ended(wait<Request>& w) noexcept {
        callback_scope::run_or_queue(w, [](waiting_callback& turn) noexcept {
            static_cast<kept_wait&>(static_cast<wait<Request>&>(turn))
                .owner.template deliver<Completion>();
        });
    }
    template <class Completion>
    void deliver() noexcept {
        wait<Request>& w = wait_.get();
        const std::error_code error = error_of(w);
        Request request(static_cast<Request&&>(w.request));
        wait_.destroy();
        complete<Completion>(request, error);
    }
    template <class Completion>
    void complete(Request& request, std::error_code error) noexcept {
        Completion completion = Completion::of(*this);
        if constexpr (std::is_void_v<typename Request::result>) {
            std::move(completion)(error);
        } else if (error) {
            std::move(completion)(error, request.nothing());
        } else if constexpr (!take_may_throw<Request>) {
            std::move(completion)(error, request.take());
        } else {
            std::optional<typename Request::result> result = taken(request);
            if (result) {
                std::move(completion)(error, std::move(*result));
            } else {
                std::move(completion)(code_of(this->exception_), request.nothing());
            }
        }
    }
    // Returns the result; or nothing, and keeps what take() has thrown.
    std::optional<typename Request::result> taken(Request& request) noexcept
        requires take_may_throw<Request>
    {
        try {
            return std::optional<typename Request::result>(std::in_place, request.take());
        } catch (...) {
            this->exception_ = std::current_exception();
            return std::nullopt;
        }
    }

    Request request_;
    bool tried_ = false;        // without success
    bool meets_often_ = false;  // set before it waits
    manual_lifetime<kept_wait> wait_;
};

template <class Result>
struct wait_signature {
    using type = void(std::error_code, Result);
};
template <>
struct wait_signature<void> {
    using type = void(std::error_code);
};

// Initiates the operation of `request`, and returns what the token returns.
template <class Request, class Token>
auto initiate_wait(Request&& request, Token&& token) {
    return completion_token_transform<typename wait_signature<typename Request::result>::type>(
        static_cast<Token&&>(token), wait_initiation<Request>(static_cast<Request&&>(request)));
}

}  // namespace coppice::internal
