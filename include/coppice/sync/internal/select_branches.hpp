// room_branch, sender_branch: the two kinds of branches of a select.
#pragma once
// An operation of this room is taken apart: its request gets a waiter with the select's choice. Any
// other sender is connected and started.
//
// Each kind has, for the owner of a select that the branch has won:
//
//   result           the type of its result; std::monostate for void
//   failed()         returns true if it has an error instead
//   throw_error()    throws the error
//   send_error(f)    calls f(error)
//   take()           returns the result

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/as_exception.hpp>
#include <coppice/sync/internal/joined_select.hpp>
#include <coppice/sync/internal/select_core.hpp>
#include <coppice/sync/internal/select_results.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>
#include <coppice/token/internal/await_operation.hpp>
#include <coppice/token/internal/outcome.hpp>

#include <cstdint>
#include <exception>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coppice::internal {

// An operation of this room that waits for nothing yet.
template <class Request, class Errors>
class room_operand {
public:
    using result = typename room_results<Request>::result;

    template <class Op>
        requires requires(Op op) { std::move(op).take_initiation(); }
    room_operand(Op&& op) noexcept
        : errors_(op.errors()), request_(static_cast<Op&&>(op).take_initiation().take_request()) {}

    // True if it can look for longer (wait.hpp).
    static constexpr bool has_soon = requires(Request& request) { request.try_soon(); };

    bool try_now() noexcept { return request_.try_now(); }
    bool try_soon() noexcept { return try_before_wait(request_); }
    bool failed() const noexcept { return Errors::throws && request_.error().value() != 0; }
    [[noreturn]] void throw_error() const {
        internal::throw_error(request_.error(), Request::name);
    }
    template <class F>
    void send_error(F f) noexcept {
        f(request_.error());
    }
    result take() noexcept(!Errors::throws || !take_may_throw<Request>) {
        if constexpr (!Errors::throws) errors_.report(request_.error(), Request::name);
        if constexpr (std::is_void_v<typename Request::result>) {
            return {};
        } else {
            if constexpr (!Errors::throws) {
                if (request_.error().value() != 0) return request_.nothing();
            }
            return take_result(request_, errors_);
        }
    }

protected:
    [[no_unique_address]] Errors errors_;
    Request request_;
};

template <class Request, class Errors>
class room_branch final : public Request::waiter_type,
                          public select_branch,
                          public room_operand<Request, Errors> {
    using waiter_type = typename Request::waiter_type;
    using operand_type = room_operand<Request, Errors>;

public:
    template <class Provider>
    room_branch(operand_type&& operand, select_core& core, const Provider&,
                std::uint32_t number) noexcept
        : waiter_type(&room_branch::granted, core.choice(), number),
          select_branch(core, number),
          operand_type(static_cast<operand_type&&>(operand)) {
        set_lock(this->request_.lock());
    }

    bool try_now() noexcept override { return operand_type::try_now(); }
    bool try_soon() noexcept override { return operand_type::try_soon(); }
    bool has_soon() const noexcept override { return operand_type::has_soon; }
    bool attempt(granted_waiters& others) noexcept override {
        return this->request_.attempt(others);
    }
    void link() noexcept override { this->request_.link(static_cast<waiter_type&>(*this)); }
    void unlink_if_linked(granted_waiters& others) noexcept override {
        if (!this->linked() || planted("select.leave_linked")) return;
        this->request_.unlink(static_cast<waiter_type&>(*this), others);
    }

private:
    static void granted(waiter& w) noexcept {
        room_branch& self = static_cast<room_branch&>(static_cast<waiter_type&>(w));
        self.core_.granted(self, self.called_by());
    }
};

// Provider::get_env() is the environment of the select's waiter.
template <class Sndr, class Provider>
class sender_branch final : public select_child {
    using Env = decltype(std::declval<const Provider&>().get_env());
    using child_env = select_child_env<Env>;
    using results = child_results<Sndr, child_env>;

public:
    using result = typename results::result;

    template <class Op>
    sender_branch(Op&& op, joined_select& select, const Provider& provider, std::uint32_t number)
        : select_child(select, number),
          provider_(provider),
          operation_(execution::connect(static_cast<Op&&>(op), receiver(*this))) {}

    void start() noexcept override { execution::start(operation_); }

    bool failed() const noexcept { return !result_; }
    [[noreturn]] void throw_error() {
        error_.visit([](auto& error) {
            std::rethrow_exception(execution::internal::as_exception(std::move(error)));
        });
        __builtin_unreachable();
    }
    template <class F>
    void send_error(F f) noexcept {
        error_.visit([&f](auto& error) { f(std::move(error)); });
    }
    result take() noexcept(std::is_nothrow_move_constructible_v<result>) {
        return static_cast<result&&>(*result_);
    }

private:
    class receiver {
    public:
        using receiver_concept = execution::receiver_tag;
        explicit receiver(sender_branch& branch) noexcept : branch_(&branch) {}
        template <class... Args>
        void set_value(Args&&... args) && noexcept {
            if (!branch_->claim()) return branch_->lost();
            branch_->keep(static_cast<Args&&>(args)...);
            branch_->won(wait_end::granted);
        }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            if (!branch_->claim()) return branch_->lost();
            branch_->keep_error(static_cast<Error&&>(error));
            branch_->won(wait_end::granted);
        }
        void set_stopped() && noexcept {
            if (!branch_->claim()) return branch_->lost();
            branch_->won(wait_end::withdrawn);
        }
        child_env get_env() const noexcept {
            return child_env(branch_->select_.child_token(), branch_->provider_.get_env());
        }

    private:
        sender_branch* branch_;
    };

    template <class... Args>
    void keep(Args&&... args) noexcept {
        try {
            result_.emplace(static_cast<Args&&>(args)...);
        } catch (...) {
            error_.template emplace<std::exception_ptr>(std::current_exception());
        }
    }
    template <class Error>
    void keep_error(Error&& error) noexcept {
        try {
            error_.template emplace<std::decay_t<Error>>(static_cast<Error&&>(error));
        } catch (...) {
            error_.template emplace<std::exception_ptr>(std::current_exception());
        }
    }

    const Provider& provider_;
    std::optional<result> result_;
    typename results::kept_error error_;
    execution::connect_result_t<Sndr, receiver> operation_;
};

template <class Op>
struct select_operand {
    static constexpr bool is_sender = true;
    using kept = Op;  // by the select, until it begins
    template <class... Env>
    using signatures = execution::signatures_of<Op, select_child_env<Env>...>;
    template <class... Env>
    using results = child_results<Op, select_child_env<Env>...>;
    template <class Provider>
    using branch = sender_branch<Op, Provider>;
};
// Operations in another dress (queue_sender.hpp).
template <class Op>
    requires requires { typename Op::selected_as; }
struct select_operand<Op> : select_operand<typename Op::selected_as> {};
// An operation that does something although it is withdrawn, such as the arrival at a barrier, is
// a branch like any other sender.
template <class Request>
concept selectable =
    !returns_later<Request>() && !requires(Request& request) { request.end_early(); };
template <selectable Request, class Errors, class... R>
struct select_operand<await_operation<wait_initiation<Request>, Errors, R...>> {
    static constexpr bool is_sender = false;
    using kept = room_operand<Request, Errors>;
    template <class...>
    using signatures = execution::completion_signatures<>;
    template <class...>
    using results = room_results<Request>;
    template <class>
    using branch = room_branch<Request, Errors>;
};

}  // namespace coppice::internal
