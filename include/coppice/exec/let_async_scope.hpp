// let_async_scope, scoped: a scope for nested work that is joined on every path.
#pragma once
// The function gets a scope token and lvalues of the first sender's values. It returns a sender,
// the body, or nothing. The operation completes with the body's result, but only after everything
// spawned into the scope has ended, whether the function throws, the body fails, or a stop arrives.
// The first error wins, whether it comes from the function, the body, or spawned work: it stops the
// rest and is the result. Source: P3296R3; scoped is ours. Cost: no allocation; one callback on the
// receiver's stop token.

#include <coppice/exec/internal/let_async_scope_sender.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>

namespace coppice::execution {

// The type of let_async_scope_with_error<Errors...>.
template <class... Errors>
struct let_async_scope_with_error_t {
    template <sender Sndr, internal::movable_value F>
    constexpr auto operator()(Sndr&& sndr, F&& f) const {
        using opener = internal::scope_opener<internal::type_list<Errors...>, std::decay_t<F>>;
        return let_value(static_cast<Sndr&&>(sndr),
                         opener(internal::construct_each(), static_cast<F&&>(f)));
    }
    template <internal::movable_value F>
    constexpr auto operator()(F&& f) const noexcept(internal::nothrow_decay_copyable<F>) {
        return execution::bind_adaptor(*this, static_cast<F&&>(f));
    }
};
// As let_async_scope, if nested work can fail only with Errors.
template <class... Errors>
inline constexpr let_async_scope_with_error_t<Errors...> let_async_scope_with_error{};

// Calls f with a scope token and lvalues of the values, and runs the sender that f returns, if it
// returns one. Completes when all work in the scope has ended. Errors of any type become an
// exception_ptr.
// Lifetime: the body's result is kept until the scope has ended, so it must not hold the scope. A
// future of spawn_future or an associated sender in the result is an association, and the join
// would wait for it forever. Let the body await the future and send its value instead.
inline constexpr let_async_scope_with_error_t<std::exception_ptr> let_async_scope{};

// As let_async_scope, without a first sender; for coroutines:
// `co_await scoped([&x](auto scope) -> task<int> {...})`. The function is kept until the scope has
// ended, so a coroutine lambda may capture.
struct scoped_t {
    template <internal::movable_value F>
    constexpr auto operator()(F&& f) const {
        return let_async_scope(just(), static_cast<F&&>(f));
    }
};
inline constexpr scoped_t scoped{};

}  // namespace coppice::execution
