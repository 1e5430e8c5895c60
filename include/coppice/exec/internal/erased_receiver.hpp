// any_receiver: the receiver that an erased sender is connected to; hides the type of another one.
#pragma once
// Three parts of the hidden receiver's environment are visible: the stop token, as an
// inplace_stop_token; the deadline; and the notice that the receiver of a timer wants.

#include <coppice/exec/deadline.hpp>
#include <coppice/exec/internal/due_notice.hpp>
#include <coppice/exec/sender.hpp>
#include <coppice/stop/inplace.hpp>

namespace coppice::execution::internal {

// A receiver's deadline, and its unwatched deadline, which no stop request enforces (deadline.hpp).
class any_deadline {
public:
    any_deadline(instant when, instant unwatched) noexcept : when_(when), unwatched_(unwatched) {}
    operator instant() const noexcept { return when_; }
    instant unwatched() const noexcept { return unwatched_; }

private:
    instant when_;
    instant unwatched_;
};

// The part of a receiver's environment that passes through the erased interface.
class any_env {
public:
    // Asks `of` for the rest.
    template <class Env>
    any_env(inplace_stop_token token, const Env& of) noexcept
        : token_(token),
          deadline_(get_deadline(of), get_unwatched_deadline(of)),
          notice_(get_due_notice(of)) {}
    inplace_stop_token query(get_stop_token_t) const noexcept { return token_; }
    any_deadline query(get_deadline_t) const noexcept { return deadline_; }
    due_notice query(get_due_notice_t) const noexcept { return notice_; }

private:
    inplace_stop_token token_;
    any_deadline deadline_;
    due_notice notice_;
};

template <class Signature>
class any_completion;
template <class Tag, class... Args>
class any_completion<Tag(Args...)> {
public:
    virtual void complete(Tag, Args&&... args) noexcept = 0;

protected:
    ~any_completion() = default;
};

// A receiver of any type. The concrete receiver derives from it.
template <class... Fns>
class any_receiver_base : public any_completion<Fns>... {
public:
    using any_completion<Fns>::complete...;
    virtual any_env get_any_env() const noexcept = 0;

protected:
    ~any_receiver_base() = default;
};

// True if Base can be completed with Tag(Args...): the arguments convert to one of its signatures.
// If the conversion may throw, Base also needs a signature that takes the exception.
template <class Base, bool SendsExceptions, class Tag, class... Args>
concept completes_erased = requires(Base& base, Args&&... args) {
    base.complete(Tag(), static_cast<Args&&>(args)...);
    requires SendsExceptions || noexcept(base.complete(Tag(), static_cast<Args&&>(args)...));
};

// The receiver that an erased sender is connected to.
template <class... Fns>
class any_receiver {
    using base_type = any_receiver_base<Fns...>;
    static constexpr bool sends_exceptions = one_of<set_error_t(std::exception_ptr), Fns...>;

public:
    using receiver_concept = receiver_tag;
    explicit any_receiver(any_receiver_base<Fns...>& base) noexcept : base_(&base) {}
    template <class... Args>
        requires completes_erased<base_type, sends_exceptions, set_value_t, Args...>
    void set_value(Args&&... args) && noexcept {
        complete(set_value_t(), static_cast<Args&&>(args)...);
    }
    template <class Error>
        requires completes_erased<base_type, sends_exceptions, set_error_t, Error>
    void set_error(Error&& error) && noexcept {
        complete(set_error_t(), static_cast<Error&&>(error));
    }
    void set_stopped() && noexcept
        requires one_of<set_stopped_t(), Fns...>
    {
        base_->complete(set_stopped_t());
    }
    any_env get_env() const noexcept { return base_->get_any_env(); }

private:
    // A conversion that throws does so before the completion.
    template <class Tag, class... Args>
    void complete(Tag tag, Args&&... args) noexcept {
        if constexpr (noexcept(base_->complete(tag, static_cast<Args&&>(args)...))) {
            base_->complete(tag, static_cast<Args&&>(args)...);
        } else {
            try {
                base_->complete(tag, static_cast<Args&&>(args)...);
            } catch (...) {
                base_->complete(set_error_t(), std::current_exception());
            }
        }
    }

    any_receiver_base<Fns...>* base_;
};

}  // namespace coppice::execution::internal
