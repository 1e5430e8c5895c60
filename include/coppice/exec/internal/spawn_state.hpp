// A spawned operation, and how spawn makes it.
#pragma once

#include <coppice/exec/internal/allocate.hpp>
#include <coppice/exec/internal/invoke.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>

namespace coppice::execution {
struct spawn_t;
}

namespace coppice::execution::internal {

struct spawn_state_base {
    virtual void complete() noexcept = 0;

protected:
    ~spawn_state_base() = default;
};

class spawn_receiver {
public:
    using receiver_concept = receiver_tag;
    explicit spawn_receiver(spawn_state_base& state) noexcept : state_(&state) {}
    void set_value() && noexcept { state_->complete(); }
    void set_stopped() && noexcept { state_->complete(); }

private:
    spawn_state_base* state_;
};

// A spawned operation. Destroys itself.
template <class Allocator, class Token, class Sndr>
class spawn_state final : public spawn_state_base {
    using association = decltype(std::declval<Token&>().try_associate());

public:
    spawn_state(Allocator allocator, Sndr&& sndr, Token token, std::source_location where)
        : allocator_(allocator),
          operation_(execution::connect(static_cast<Sndr&&>(sndr), spawn_receiver(*this))),
          assoc_(token.try_associate()),
          listing_(where) {}
    spawn_state(spawn_state&&) = delete;

    void run() noexcept {
        if (assoc_) {
            listing_.enter(assoc_);
            execution::start(operation_);
        } else {
            complete();
        }
    }
    void complete() noexcept override {
        // Leaves the scope last, because the scope may be destroyed then.
        const association leaving = static_cast<association&&>(assoc_);
        internal::delete_with(Allocator(allocator_), this);
    }

private:
    [[no_unique_address]] Allocator allocator_;
    connect_result_t<Sndr, spawn_receiver> operation_;
    association assoc_;
    scope_listing listing_;
};

template <class Sigs>
inline constexpr bool spawnable = false;
template <class... Fns>
inline constexpr bool spawnable<completion_signatures<Fns...>> =
    (one_of<Fns, set_value_t(), set_stopped_t()> && ...);

// The compiler's message for a sender that cannot be spawned: says what to append.
template <class Error, bool SendsErrors>
struct spawn_diagnosis {
    static_assert(
        always_false<Error>,
        "coppice: this pipeline does not type-check: no function takes the values of what is "
        "spawned; append then(...) that returns nothing, or use spawn_future");
    static constexpr bool reported = true;
};
template <class Error>
struct spawn_diagnosis<Error, true> {
    static_assert(
        always_false<Error>,
        "coppice: this pipeline does not type-check: no function takes the errors of what is "
        "spawned; write spawn(sender, scope, on_error), or use spawn_future");
    static constexpr bool reported = true;
};

// Returns the sender that spawn connects. The token may add a consumer for errors.
template <class Token, class Sndr>
constexpr decltype(auto) wrap_spawned(const Token& token, Sndr&& sndr) {
    if constexpr (requires { token.wrap_spawned(static_cast<Sndr&&>(sndr)); }) {
        return token.wrap_spawned(static_cast<Sndr&&>(sndr));
    } else {
        return token.wrap(static_cast<Sndr&&>(sndr));
    }
}
// Returns the environment of spawned work: the given one, then what the token adds, if it does.
template <class Wrapped, class Token, class Env>
constexpr auto spawned_env(const Wrapped& wrapped, const Token& token, Env env) {
    auto given = internal::spawned_env(wrapped, static_cast<Env&&>(env));
    if constexpr (requires { token.get_env(); }) {
        return join_env_t<decltype(given), decltype(token.get_env())>(std::move(given),
                                                                      token.get_env());
    } else {
        return given;
    }
}

// Calls on_error with an error of spawned work. noexcept: no caller could handle its exception.
template <class OnError>
class spawn_error_handler {
public:
    explicit spawn_error_handler(OnError&& on_error) noexcept(
        std::is_nothrow_move_constructible_v<OnError>)
        : on_error_(static_cast<OnError&&>(on_error)) {}
    template <class Error>
        requires std::is_invocable_v<OnError, Error>
    void operator()(Error&& error) && noexcept {
        static_cast<void>(
            internal::invoke(static_cast<OnError&&>(on_error_), static_cast<Error&&>(error)));
    }

private:
    [[no_unique_address]] OnError on_error_;
};

template <class F, class Sigs>
inline constexpr bool takes_an_error_of = false;
template <class F, class... Fns>
inline constexpr bool takes_an_error_of<F, completion_signatures<Fns...>> =
    (takes_an_error_of<F, Fns> || ...);
template <class F, class Error>
inline constexpr bool takes_an_error_of<F, set_error_t(Error)> = std::is_invocable_v<F, Error>;

// Returns true if F, the third argument of spawn, is on_error.
template <class F, class Sndr, class Token>
consteval bool is_spawn_error_handler() noexcept {
    if constexpr (std::is_same_v<F, env<>>) {
        return false;
    } else if constexpr (std::is_pointer_v<F> || requires { &F::operator(); }) {
        return true;
    } else {
        using wrapped = decltype(std::declval<const Token&>().wrap(std::declval<Sndr>()));
        using env_type = decltype(internal::spawned_env(std::declval<const wrapped&>(),
                                                        std::declval<const Token&>(), env<>()));
        using spawned = decltype(write_env(std::declval<wrapped>(), std::declval<env_type>()));
        return takes_an_error_of<F, signatures_of<spawned, env<>>>;
    }
}

// Starts sndr in token's scope. The errors must have been handled, unless the token handles them.
template <class Sndr, class Token, class Env>
void begin_spawn(Sndr&& sndr, const Token& token, Env&& spawn_env,
                 const std::source_location& where) {
    auto wrapped = internal::wrap_spawned(token, static_cast<Sndr&&>(sndr));
    auto allocator = internal::choose_allocator(wrapped, spawn_env);
    auto full_env = internal::spawned_env(wrapped, token, static_cast<Env&&>(spawn_env));
    using Spawned = decltype(write_env(std::move(wrapped), std::move(full_env)));
    using Sigs = signatures_of<Spawned, env<>>;
    if constexpr (!is_completion_signatures<Sigs>) {
        static_assert(diagnosis<Sigs>::reported);
    } else if constexpr (!spawnable<Sigs>) {
        using Error = pipeline_error<in_algorithm<spawn_t>, got<Sigs>,
                                     wanted<only_value_and_stopped_completions>>;
        constexpr bool sends_errors = Sigs::count_of(set_error) != 0;
        static_assert(spawn_diagnosis<Error, sends_errors>::reported);
    } else {
        using state = spawn_state<decltype(allocator), Token, Spawned>;
        state* const spawned = internal::new_with<state>(
            allocator, allocator, write_env(std::move(wrapped), std::move(full_env)), token, where);
        spawned->run();
    }
}

// As above; on_error handles the errors.
template <class Sndr, class Token, class OnError, class Env>
void begin_spawn_handled(Sndr&& sndr, const Token& token, OnError&& on_error, Env&& spawn_env,
                         const std::source_location& where) {
    internal::begin_spawn(
        upon_error(static_cast<Sndr&&>(sndr),
                   spawn_error_handler<OnError>(static_cast<OnError&&>(on_error))),
        token, static_cast<Env&&>(spawn_env), where);
}

}  // namespace coppice::execution::internal
