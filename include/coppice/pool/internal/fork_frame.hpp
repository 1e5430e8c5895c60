// fork_frame: two functions that run side by side, and the exceptions of both; for fork_join.
#pragma once

#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/internal/invoke.hpp>
#include <coppice/pool/internal/default_worker.hpp>
#include <coppice/stop/inplace.hpp>

#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace coppice::internal {

// Returns the token of the nearest fork_join(token, ...) around the caller.
inline inplace_stop_token inherited_fork_token() noexcept {
    const void* const token = fork_context::current();
    return token == nullptr ? inplace_stop_token() : *static_cast<const inplace_stop_token*>(token);
}

template <class F>
concept forkable = std::is_invocable_v<F&> || std::is_invocable_v<F&, inplace_stop_token>;

template <class F>
struct forked_result {};
template <class F>
    requires std::is_invocable_v<F&>
struct forked_result<F> : std::invoke_result<F&> {};
template <class F>
    requires(!std::is_invocable_v<F&>) && std::is_invocable_v<F&, inplace_stop_token>
struct forked_result<F> : std::invoke_result<F&, inplace_stop_token> {};
template <class F>
using forked_result_t = typename forked_result<F>::type;

template <forkable F>
[[gnu::always_inline]] inline forked_result_t<F> call_forked(F& f) {
    if constexpr (std::is_invocable_v<F&>) {
        return f();
    } else {
        return execution::internal::invoke(f, inherited_fork_token());
    }
}
// The type of a function's result in the tuple that fork_join returns.
template <class F>
using forked_value_t =
    std::conditional_t<std::is_void_v<forked_result_t<F>>, std::monostate, forked_result_t<F>>;

template <class F>
[[gnu::always_inline]] inline forked_value_t<F> forked_value(F& f) {
    if constexpr (std::is_void_v<forked_result_t<F>>) {
        call_forked(f);
        return {};
    } else {
        return call_forked(f);
    }
}

// A small closure that the caller gives away, such as a lambda written into the call, is forked as
// a copy. The compiler then knows that no other code sees the original, and keeps its captures in
// registers. The copy is called as the original would have been: once, and not const. F is deduced
// by fork_join: it is a reference if the caller keeps the function, which then stays where it is.
template <class F>
inline constexpr bool forks_copy =
    std::is_trivially_copyable_v<F> && std::is_copy_constructible_v<F> &&
    sizeof(F) <= 4 * sizeof(void*);
template <class F>
    requires(!std::is_object_v<F>)
inline constexpr bool forks_copy<F> = false;
template <class F>
using fork_access = std::conditional_t<forks_copy<F>, F, F&>;

// Calls g and drops its exception, because an earlier function's exception is thrown instead.
template <class G>
void call_unheard(G& g) noexcept {
    std::exception_ptr later;
    try {
        forked_value(g);
    } catch (...) {
        later = std::current_exception();
    }
}

// Two functions that run side by side. The frame holds the second function while it is in the
// deque; its outcome, which is written only if a thief runs it; and what the caller needs after the
// first has returned. The caller reads all of this from the frame again. If it were in registers,
// every call would have to save them, even one that forks nothing. For the same reason the
// exception of the first function is caught.
template <class F, class G>
class fork_frame : immovable {
    using first_type = forked_value_t<F>;
    using second_type = forked_value_t<G>;
    static constexpr bool is_reference = std::is_reference_v<second_type>;
    using stored_type =
        std::conditional_t<is_reference, std::remove_reference_t<second_type>*, second_type>;

public:
    explicit fork_frame(G& second) noexcept : second_(second) {}

    // Returns false if the deque is full.
    [[gnu::always_inline]] bool push(fork_deque& deque) noexcept {
        slot_ = deque.push(&run_stolen, this);
        return slot_ != nullptr;
    }
    // Errors: what the first function throws. The handler must call first_threw().
    [[gnu::always_inline]] void call_first(F& first) {
        first_.construct_with([&first] { return first_value{forked_value(first)}; });
    }
    [[gnu::always_inline]] first_type&& first() noexcept {
        return static_cast<first_type&&>(first_.get().value);
    }
    void destroy_first() noexcept {
        if constexpr (!std::is_trivially_destructible_v<first_value>) first_.destroy();
    }
    // Runs the second function to its end, and keeps the first one's exception for throw_first().
    [[gnu::noinline, gnu::cold]] void first_threw() noexcept {
        fork_deque& deque = *fork_deque::current();
        if (deque.pop(slot_)) {
            call_unheard(second_);
        } else {
            deque.join(slot_);
            outcome_.destroy();
        }
        outcome_.construct().error = std::current_exception();
    }
    // Passes the member, because the address of the frame would be kept in a register.
    [[noreturn, gnu::always_inline]] void throw_first() { rethrow(outcome_); }
    // Looks up the deque again, here and below, because it would be kept in a register.
    [[gnu::always_inline]] bool pop() noexcept { return fork_deque::current()->pop(slot_); }
    void join() noexcept { fork_deque::current()->join(slot_); }
    [[gnu::always_inline]] second_type call_second() { return forked_value(second_); }
    // Returns the second function's result after a thief has run it. Errors: what it threw.
    [[gnu::noinline]] second_type take_second() {
        if (outcome_.get().error) rethrow(outcome_);
        const scope_exit end([this]() noexcept { outcome_.destroy(); });
        outcome& result = outcome_.get();
        if constexpr (is_reference) {
            return static_cast<second_type>(**result.value);
        } else {
            return static_cast<second_type&&>(*result.value);
        }
    }

private:
    struct first_value {
        first_type value;
    };
    struct outcome {
        std::optional<stored_type> value;
        std::exception_ptr error;
    };
    [[noreturn, gnu::noinline, gnu::cold]] static void rethrow(manual_lifetime<outcome>& from) {
        std::exception_ptr error = std::move(from.get().error);
        from.destroy();
        std::rethrow_exception(std::move(error));
    }
    static void run_stolen(void* frame, fork_slot& slot) noexcept {
        auto& self = *static_cast<fork_frame*>(frame);
        outcome& result = self.outcome_.construct();
        try {
            if constexpr (is_reference) {
                auto&& value = forked_value(self.second_);
                result.value.emplace(__builtin_addressof(value));
            } else {
                result.value.emplace(forked_value(self.second_));
            }
        } catch (...) {
            result.error = std::current_exception();
        }
        slot.finish();
    }

    fork_access<G> second_;
    fork_slot* slot_;
    manual_lifetime<first_value> first_;
    manual_lifetime<outcome> outcome_;  // constructed by the thief
};

template <class F, class G>
auto fork_both(F&& f, G&& g) -> std::tuple<forked_value_t<F>, forked_value_t<G>>;

// Calls both off the fast path. Off the pool, a worker of the default pool forks them. In a full
// deque, or if there are no workers, calls both in order, the second even if the first throws.
template <class F, class G>
[[gnu::noinline]] std::tuple<forked_value_t<F>, forked_value_t<G>> both_elsewhere(
    fork_access<F> f, fork_access<G> g) {
    if (should_move()) {
        auto both = [&f, &g] { return fork_both<F, G>(static_cast<F&&>(f), static_cast<G&&>(g)); };
        return call_on_default_pool(both);
    }
    scope_exit second_too([&g]() noexcept { call_unheard(g); });
    forked_value_t<F> first = forked_value(f);
    second_too.dismiss();
    return {static_cast<forked_value_t<F>&&>(first), forked_value(g)};
}

// Calls both, the second on another worker if one steals it. Errors: what fork_join throws.
template <class F, class G>
[[gnu::always_inline]] inline auto fork_both(F&& f, G&& g)
    -> std::tuple<forked_value_t<F>, forked_value_t<G>> {
    using result = std::tuple<forked_value_t<F>, forked_value_t<G>>;
    fork_deque* const deque = fork_deque::current();
    if (deque != nullptr) [[likely]] {
        fork_frame<F, G> frame(g);
        if (frame.push(*deque)) [[likely]] {
            bool thrown = false;
            try {
                frame.call_first(f);
            } catch (...) {
                frame.first_threw();
                thrown = true;
            }
            if (thrown) [[unlikely]]
                frame.throw_first();
            const scope_exit end([&frame]() noexcept { frame.destroy_first(); });
            if (frame.pop()) [[likely]]
                return result(frame.first(), frame.call_second());
            frame.join();
            return result(frame.first(), frame.take_second());
        }
    }
    auto [first, second] = both_elsewhere<F, G>(f, g);
    return result(static_cast<forked_value_t<F>&&>(first),
                  static_cast<forked_value_t<G>&&>(second));
}

}  // namespace coppice::internal
