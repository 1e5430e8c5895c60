// expect: derive it from with_awaitable_senders, give it an await_transform
// errors: 1
#include <coppice/exec/just.hpp>
#include <coppice/exec/then.hpp>

namespace ex = coppice::execution;

struct plain_coroutine {
    struct promise_type {
        plain_coroutine get_return_object();
        std::suspend_never initial_suspend();
        std::suspend_never final_suspend() noexcept;
        void unhandled_exception();
        void return_void();
    };
};
plain_coroutine wrong() {
    co_await (ex::just(1) | ex::then([](int i) { return i; }));
}
