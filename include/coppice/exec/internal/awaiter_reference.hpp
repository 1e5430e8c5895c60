// awaiter_reference: awaits an awaiter that lives elsewhere.
#pragma once

#include <coppice/base/internal/namespaces.hpp>

#include <coroutine>
#include <utility>

namespace coppice::execution::internal {

// Awaits an awaiter through a reference. Needed because g++ 12 copies an awaiter given as an
// xvalue.
template <class Awaiter>
class awaiter_reference {
public:
    explicit awaiter_reference(Awaiter& awaiter) noexcept : awaiter_(awaiter) {}
    decltype(auto) await_ready() noexcept(noexcept(std::declval<Awaiter&>().await_ready())) {
        return awaiter_.await_ready();
    }
    // Result is in the signature because await_suspend's type may depend on the compiler: the two
    // then have different mangled names.
    template <class Promise, class Result = decltype(std::declval<Awaiter&>().await_suspend(
                                 std::declval<std::coroutine_handle<Promise>>()))>
    Result await_suspend(std::coroutine_handle<Promise> h) noexcept(
        noexcept(std::declval<Awaiter&>().await_suspend(h))) {
        return awaiter_.await_suspend(h);
    }
    decltype(auto) await_resume() noexcept(noexcept(std::declval<Awaiter&>().await_resume())) {
        return awaiter_.await_resume();
    }

private:
    Awaiter& awaiter_;
};

}  // namespace coppice::execution::internal
