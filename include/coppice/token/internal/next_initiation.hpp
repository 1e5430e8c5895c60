// next_initiation: next() of an async_generator for tokens other than use_await.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/task/internal/async_generator_next.hpp>
#include <coppice/token/completion.hpp>
#include <coppice/token/internal/code_of.hpp>

#include <exception>
#include <system_error>
#include <type_traits>

namespace coppice::internal {

// The initiation. Movable until it is called.
template <class T, class Env>
class next_initiation {
    using item_type = execution::internal::item_of_t<T>;
    using body_type = execution::internal::async_generator_body<T, Env>;
    using completion_type = completion<item_type>;

    class receiver {
    public:
        using receiver_concept = execution::receiver_tag;
        explicit receiver(next_initiation& initiation) noexcept : initiation_(&initiation) {}
        void set_value(item_type item) && noexcept {
            static_cast<completion_type&&>(initiation_->done_)(no_error,
                                                               static_cast<item_type&&>(item));
        }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            initiation_->exception_ =
                execution::internal::as_exception(static_cast<Error&&>(error));
            initiation_->fail(code_of(initiation_->exception_));
        }
        void set_stopped() && noexcept {
            initiation_->done_.tell_stopped();
            initiation_->fail(std::make_error_code(std::errc::operation_canceled));
        }
        completion_env get_env() const noexcept { return initiation_->done_.get_env(); }

    private:
        next_initiation* initiation_;
    };
    using operation_type = execution::internal::next_operation<T, Env, receiver>;

public:
    static constexpr const char* name = "async_generator::next";

    explicit next_initiation(body_type& body) noexcept : body_(&body) {}
    next_initiation(next_initiation&& other) noexcept : body_(other.body_) {}
    ~next_initiation() {
        if (is_begun_) operation_.destroy();
    }
    void operator()(completion_type done) noexcept {
        done_ = done;
        operation_.construct_with([this] { return operation_type(*body_, receiver(*this)); });
        is_begun_ = true;
        execution::start(operation_.get());  // this object may be gone
    }
    // What the body has thrown, for tokens that throw.
    std::exception_ptr exception() const noexcept { return exception_; }

private:
    void fail(std::error_code error) noexcept {
        static_cast<completion_type&&>(done_)(error, item_type());  // this object may be gone
    }

    body_type* body_;
    completion_type done_;
    std::exception_ptr exception_;
    manual_lifetime<operation_type> operation_;
    bool is_begun_ = false;
};

}  // namespace coppice::internal
