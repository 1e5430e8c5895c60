// What co_await returns for a sender that cannot be awaited: one error that says what to write.
#pragma once
// The object has the members of an awaiter, so that the compiler searches no further, but does not
// satisfy the concept is_awaiter. Its await_ready() holds the error, and is instantiated only where
// the object is awaited.

#include <coppice/exec/internal/awaitable.hpp>

namespace coppice::execution::internal {

template <class Derived>
class refused_await {
public:
    using is_refused_await = void;
    struct any_result {
        template <class T>
        operator T() const noexcept;
    };

    constexpr refused_await() noexcept = default;
    bool await_ready() const noexcept { return Derived::explain(); }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    any_result await_resume() const noexcept { return {}; }
};

template <class T>
struct await_of_several_results : refused_await<await_of_several_results<T>> {
    static constexpr bool explain() noexcept {
        static_assert(
            always_false<T>,
            "co_await: this sender has several value completions, and an await returns one "
            "value: write co_await into_variant(sender)");
        return true;
    }
};
template <class T>
struct await_of_an_lvalue : refused_await<await_of_an_lvalue<T>> {
    static constexpr bool explain() noexcept {
        static_assert(always_false<T>,
                      "co_await: this object is awaited once, and only as an r-value: write "
                      "co_await std::move(object)");
        return true;
    }
};
template <class T>
struct await_that_does_not_come_back : refused_await<await_that_does_not_come_back<T>> {
    static constexpr bool explain() noexcept {
        static_assert(
            always_false<T>,
            "co_await: a task continues on its scheduler, and cannot come back to it from "
            "this awaitable: give its await_suspend() a std::coroutine_handle<> instead "
            "of the task's own, or, if it resumes the task where it was suspended, a "
            "member type: using keeps_scheduler = void;");
        return true;
    }
};
template <class Sch>
struct await_without_a_way_back : refused_await<await_without_a_way_back<Sch>> {
    static constexpr bool explain() noexcept {
        static_assert(always_false<Sch>,
                      "co_await: a task continues on its scheduler, and to schedule on Env's "
                      "start_scheduler_type can fail: name a scheduler that cannot, or "
                      "inline_scheduler to continue where the await ends");
        return true;
    }
};

template <class T>
struct await_without_as_awaitable : refused_await<await_without_as_awaitable<T>> {
    static constexpr bool explain() noexcept {
        static_assert(always_false<T>,
                      "co_await: this coroutine's promise does not know senders: derive it from "
                      "with_awaitable_senders, give it an await_transform that calls as_awaitable, "
                      "or write the coroutine as a task");
        return true;
    }
};

}  // namespace coppice::execution::internal
