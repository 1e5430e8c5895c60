// select_operation, select_wait: a select as a sender's operation, and in the frame of a task.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/runs_here.hpp>
#include <coppice/sync/internal/select_branches.hpp>
#include <coppice/sync/internal/wait_awaiter.hpp>
#include <coppice/task/internal/suspension.hpp>
#include <coppice/task/internal/transfer.hpp>
#include <coppice/token/internal/inline_start.hpp>
#include <coppice/token/internal/outcome.hpp>
#include <coppice/token/internal/stop_link.hpp>

#include <coroutine>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coppice::internal {

// A select and its branches. Operands is select_pack or select_vector; Provider::get_env() is the
// environment of the waiter.
template <class Operands, class Provider>
class select_state : public std::conditional_t<Operands::joins, joined_select, lone_select> {
    using base = std::conditional_t<Operands::joins, joined_select, lone_select>;

public:
    using branches_type = typename Operands::template branches<Provider>;
    using result = typename branches_type::result;
    using env_type = decltype(std::declval<const Provider&>().get_env());
    static constexpr bool may_stop =
        may_be_stopped<env_type> || Operands::template results<env_type>::may_stop;

protected:
    template <class P>
    select_state(typename base::function* ended, Operands&& operands, P&& provider)
        : base(ended),
          provider_(static_cast<P&&>(provider)),
          branches_(static_cast<Operands&&>(operands), static_cast<base&>(*this), provider_) {}

    // Returns true if the select completed at once, because a branch was ready.
    bool take_ready() noexcept {
        this->shuffle(random_below);
        return base::take_ready();
    }
    bool is_empty() const noexcept { return branches_.is_empty(); }
    // The error of the select itself, not of a branch.
    std::error_code error() const noexcept {
        if (is_empty()) return std::make_error_code(std::errc::invalid_argument);
        switch (this->end()) {
            case wait_end::granted:
                return {};
            case wait_end::withdrawn:
                return std::make_error_code(std::errc::operation_canceled);
            case wait_end::refused:
                break;
        }
        return std::make_error_code(std::errc::resource_unavailable_try_again);
    }
    // Returns the result, or throws the error.
    result get() {
        const std::error_code error = this->error();
        if (error.value() != 0) [[unlikely]]
            internal::throw_error(error, Operands::name);
        return branches_.template visit<result>(this->winner(), [](auto& branch, auto make) {
            if (branch.failed()) branch.throw_error();
            return make();
        });
    }
    bool is_stopped() const noexcept {
        return may_stop && !is_empty() && this->end() == wait_end::withdrawn;
    }

    Provider provider_;
    branches_type branches_;
};

template <class Rcvr>
struct receiver_provider {
    execution::env_of_t<const Rcvr&> get_env() const noexcept { return execution::get_env(rcvr); }
    Rcvr rcvr;
};

template <class Operands, class Rcvr>
class select_operation final : select_state<Operands, receiver_provider<Rcvr>> {
    using state = select_state<Operands, receiver_provider<Rcvr>>;
    using result = typename state::result;

public:
    using operation_state_concept = execution::operation_state_tag;
    select_operation(Operands&& operands, Rcvr rcvr)
        : state(&select_operation::ended, static_cast<Operands&&>(operands),
                receiver_provider<Rcvr>{static_cast<Rcvr&&>(rcvr)}) {}

    void start() & noexcept {
        const auto& env = this->provider_.get_env();
        const bool is_over = this->is_empty() ||
                             (!get_stop_token(env).stop_requested() && this->take_ready()) ||
                             this->begin(completion_env_of(env, link_));
        if (is_over) deliver();
    }

private:
    static void ended(select_core& core) noexcept {
        callback_scope::run_or_queue(core, [](waiting_callback& turn) noexcept {
            static_cast<select_operation&>(static_cast<select_core&>(turn)).deliver();
        });
    }
    void deliver() noexcept {
        link_.reset();
        if constexpr (state::may_stop) {
            if (this->is_stopped()) {
                execution::set_stopped(static_cast<Rcvr&&>(this->provider_.rcvr));
                return;
            }
        }
        if (const std::error_code error = this->error(); error.value() != 0) {
            execution::set_error(static_cast<Rcvr&&>(this->provider_.rcvr), std::error_code(error));
            return;
        }
        this->branches_.template visit<void>(
            this->winner(),
            [this](auto& branch, auto make) noexcept { this->deliver(branch, make); });
    }
    template <class Branch, class Make>
    void deliver(Branch& branch, Make make) noexcept {
        Rcvr& rcvr = this->provider_.rcvr;
        if (branch.failed()) {
            branch.send_error([&rcvr]<class Error>(Error&& error) noexcept {
                execution::set_error(static_cast<Rcvr&&>(rcvr), static_cast<Error&&>(error));
            });
        } else if constexpr (std::is_nothrow_move_constructible_v<result> &&
                             noexcept(branch.take())) {
            execution::set_value(static_cast<Rcvr&&>(rcvr), make());
        } else {
            try {
                result made = make();
                execution::set_value(static_cast<Rcvr&&>(rcvr), static_cast<result&&>(made));
            } catch (...) {
                execution::set_error(static_cast<Rcvr&&>(rcvr), std::current_exception());
            }
        }
    }

    [[no_unique_address]] stop_link_for<typename state::env_type> link_;
};

template <class Promise>
struct promise_provider {
    execution::env_of_t<const Promise&> get_env() const noexcept {
        return execution::get_env(promise);
    }
    const Promise& promise;
};

// Brings the task back as a wait_awaiter does.
template <class Operands, class Promise>
class select_wait : select_state<Operands, promise_provider<Promise>> {
    using state = select_state<Operands, promise_provider<Promise>>;
    using scheduler_type =
        std::remove_cvref_t<decltype(std::declval<Promise&>().context().scheduler)>;

public:
    using result = typename state::result;

    select_wait(Operands&& operands, Promise& promise)
        : state(&select_wait::ended, static_cast<Operands&&>(operands),
                promise_provider<Promise>{promise}),
          promise_(promise) {}

    bool await_ready() noexcept {
        if (this->is_empty()) return true;
        if (get_stop_token(this->provider_.get_env()).stop_requested()) return false;
        return this->take_ready();
    }
    template <class Suspension = execution::internal::suspension>
    auto await_suspend(std::coroutine_handle<Promise> task) {
        if (!promise_.context().is_inline()) way_.prepare(promise_.context().scheduler, *this);
        if (!this->begin(completion_env_of(this->provider_.get_env(), link_)))
            return Suspension::stay();
        link_.reset();
        if (this->is_stopped()) {
            resume_stopped();
            return Suspension::stay();
        }
        return Suspension::go_on(task);
    }
    typename state::result await_resume() { return this->get(); }
    // Puts the branches into a random order. Called instead of await_ready().
    void shuffle() noexcept { state::shuffle(random_below); }

    // Called on the task's scheduler, or where the task is resumed in place.
    void arrived() noexcept {
        if (this->is_stopped()) {
            resume_stopped();
        } else {
            execution::internal::resume_from_outside(
                std::coroutine_handle<Promise>::from_promise(promise_));
        }
    }

private:
    static void ended(select_core& core) noexcept {
        select_wait& self = static_cast<select_wait&>(core);
        self.link_.reset();
        const auto& context = self.promise_.context();
        if (context.is_inline() || execution::internal::runs_here(context.scheduler)) {
            callback_scope::run_or_queue(core, [](waiting_callback& turn) noexcept {
                static_cast<select_wait&>(static_cast<select_core&>(turn)).arrived();
            });
        } else {
            self.way_.start(context.scheduler, self);
        }
    }
    void resume_stopped() noexcept {
        execution::internal::resume_from_outside(
            static_cast<std::coroutine_handle<>>(promise_.unhandled_stopped()));
    }

    Promise& promise_;
    [[no_unique_address]] stop_link_for<typename state::env_type> link_;
    way_to_scheduler<scheduler_type, select_wait> way_;
};

// Tries the operations of this room first: the branches, their waiters, and what else it takes to
// wait are made only if none is ready.
template <class Operands, class Promise>
class select_awaiter : immovable {
    using wait_type = select_wait<Operands, Promise>;

public:
    select_awaiter(Operands&& operands, Promise& promise) noexcept
        : operands_(static_cast<Operands&&>(operands)), promise_(promise) {}
    ~select_awaiter() {
        if (waits_) [[unlikely]]
            wait_.destroy();
    }

    bool await_ready() {
        if (!get_stop_token(execution::get_env(promise_)).stop_requested()) {
            taken_ = operands_.take_ready(random_below);
            if (taken_ != none) [[likely]]
                return true;
        }
        make_wait();
        return false;
    }
    template <class Suspension = execution::internal::suspension>
    auto await_suspend(std::coroutine_handle<Promise> task) {
        return wait_.get().template await_suspend<Suspension>(task);
    }
    typename wait_type::result await_resume() {
        if (waits_) [[unlikely]]
            return wait_.get().await_resume();
        return operands_.template take<typename wait_type::result>(taken_);
    }

private:
    static constexpr std::uint32_t none = Operands::size;

    [[gnu::noinline]] void make_wait() {
        wait_.construct(static_cast<Operands&&>(operands_), promise_);
        waits_ = true;
        wait_.get().shuffle();  // several may become ready before it waits
    }

    Operands operands_;
    Promise& promise_;
    std::uint32_t taken_ = none;
    bool waits_ = false;
    manual_lifetime<wait_type> wait_;
};

struct no_provider {
    static execution::env<> get_env() noexcept { return {}; }
};

// The awaiter in a coroutine that has no environment and no way to be stopped. It is resumed in
// place.
template <class Operands>
class select_plain_awaiter : select_state<Operands, no_provider> {
    using state = select_state<Operands, no_provider>;

public:
    explicit select_plain_awaiter(Operands&& operands)
        : state(&select_plain_awaiter::ended, static_cast<Operands&&>(operands), no_provider()) {}

    bool await_ready() noexcept { return this->is_empty() || this->take_ready(); }
    template <class Promise, class Suspension = execution::internal::suspension>
        requires(!requires(Promise& promise) { promise.unhandled_stopped(); })
    auto await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
        coroutine_ = coroutine;
        return this->begin(completion_env()) ? Suspension::go_on(coroutine) : Suspension::stay();
    }
    typename state::result await_resume() { return this->get(); }

private:
    static void ended(select_core& core) noexcept {
        callback_scope::run_or_queue(core, [](waiting_callback& turn) noexcept {
            static_cast<select_plain_awaiter&>(static_cast<select_core&>(turn)).coroutine_.resume();
        });
    }

    std::coroutine_handle<> coroutine_;
};

}  // namespace coppice::internal
