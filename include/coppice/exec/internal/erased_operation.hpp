// any_sender_operation: connects an erased sender to a receiver of a known type.
#pragma once
// The receiver stays in this operation, which is the any_receiver_base of the erased one. The
// erased operation is stored next to it, and goes to the heap if it does not fit.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/erased_receiver.hpp>
#include <coppice/exec/internal/inplace_token_of.hpp>
#include <coppice/exec/internal/small_object.hpp>

#include <cstddef>

namespace coppice::execution::internal {

class any_operation_base : immovable {
public:
    virtual ~any_operation_base() = default;
    virtual void start() noexcept = 0;
};
// Room for most leaf operations and short pipelines.
inline constexpr std::size_t any_operation_size = 128;
template <std::size_t Size>
using any_storage = small_object<any_operation_base, sizeof(void*) + Size>;
using any_operation_storage = any_storage<any_operation_size>;

template <class Sndr, class Rcvr>
class any_connected final : public any_operation_base {
public:
    any_connected(Sndr&& sndr,
                  Rcvr rcvr) noexcept(noexcept(execution::connect(static_cast<Sndr&&>(sndr),
                                                                  static_cast<Rcvr&&>(rcvr))))
        : operation_(execution::connect(static_cast<Sndr&&>(sndr), static_cast<Rcvr&&>(rcvr))) {}
    void start() noexcept override { execution::start(operation_); }

private:
    connect_result_t<Sndr, Rcvr> operation_;
};

// The concrete end of an erased connection: completes Rcvr. One level of derivation per signature.
template <class Derived, class Base, class... Fns>
class any_completions;
template <class Derived, class Base>
class any_completions<Derived, Base> : public Base {
protected:
    ~any_completions() = default;
};
template <class Derived, class Base, class Tag, class... Args, class... Fns>
class any_completions<Derived, Base, Tag(Args...), Fns...>
    : public any_completions<Derived, Base, Fns...> {
public:
    using any_completions<Derived, Base, Fns...>::complete;
    void complete(Tag tag, Args&&... args) noexcept override {
        static_cast<Derived*>(this)->finish(tag, static_cast<Args&&>(args)...);
    }

protected:
    ~any_completions() = default;
};

// Sent lists those of Fns that Rcvr may be completed with; another one ends the process. Size is
// the room for the erased operation in bytes.
template <std::size_t Size, class Rcvr, class Sent, class... Fns>
class any_sender_operation final : any_completions<any_sender_operation<Size, Rcvr, Sent, Fns...>,
                                                   any_receiver_base<Fns...>, Fns...> {
    template <class, class, class...>
    friend class any_completions;

public:
    using operation_state_concept = operation_state_tag;

    // connect_into(storage, receiver) connects the erased sender there.
    template <class ConnectInto>
    any_sender_operation(ConnectInto&& connect_into, Rcvr rcvr)
        : rcvr_(static_cast<Rcvr&&>(rcvr)),
          token_(get_stop_token(execution::get_env(std::as_const(rcvr_)))) {
        connect_into(storage_, any_receiver<Fns...>(*this));
    }
    any_sender_operation(any_sender_operation&&) = delete;

    void start() & noexcept {
        token_.listen(get_stop_token(execution::get_env(rcvr_)));
        storage_.get()->start();
    }

private:
    template <class Tag, class... Args>
    void finish(Tag tag, Args&&... args) noexcept {
        token_.reset();
        if constexpr (std::is_same_v<set_insert_t<Sent, Tag(Args...)>, Sent>) {
            tag(static_cast<Rcvr&&>(rcvr_), static_cast<Args&&>(args)...);
        } else {
            COPPICE_CHECK(false,
                          "a scheduler in an any_scheduler stopped an operation that cannot be "
                          "stopped: only its timers may do that");
        }
    }
    any_env get_any_env() const noexcept override {
        return any_env(token_.get(), execution::get_env(rcvr_));
    }

    [[no_unique_address]] Rcvr rcvr_;
    inplace_token_of<stop_token_of_t<env_of_t<Rcvr>>> token_;
    any_storage<Size> storage_;
};

}  // namespace coppice::execution::internal
