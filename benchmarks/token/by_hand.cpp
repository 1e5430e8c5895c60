// Without a library: an intrusive callback, and the paper's awaiter.
#include "operation.hpp"
#include "rivals.hpp"

#include "../harness.hpp"

namespace bench_token {

std::uint64_t intrusive_by_hand(std::size_t size) {
    struct loop : os_context {
        std::size_t left = 0;
        std::uint64_t sum = 0;
        void start() {
            callback = [](int result, os_context* context) {
                loop& self = *static_cast<loop*>(context);
                self.sum += static_cast<std::uint64_t>(result);
                if (--self.left != 0) os_xyz(static_cast<int>(self.left & 7), &self);
            };
            os_xyz(static_cast<int>(left & 7), this);
        }
    } l;
    l.left = size;
    l.start();
    os_run();
    return bench::hash().add(l.sum).value();
}

namespace {

struct awaiter : os_context {
    explicit awaiter(int p) noexcept { parameter = p; }
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) noexcept {
        coroutine = h;
        callback = [](int r, os_context* context) {
            awaiter& self = *static_cast<awaiter*>(context);
            self.result = r;
            self.coroutine.resume();
        };
        os_xyz(parameter, this);
    }
    int await_resume() const noexcept { return result; }
    std::coroutine_handle<> coroutine;
    int result = 0;
};

detached await_by_hand(std::size_t left, std::uint64_t& sum) {
    for (; left != 0; --left) {
        sum += static_cast<std::uint64_t>(co_await awaiter(static_cast<int>(left & 7)));
    }
}

}  // namespace

std::uint64_t awaiter_by_hand(std::size_t size) {
    std::uint64_t sum = 0;
    await_by_hand(size, sum);
    os_run();
    return bench::hash().add(sum).value();
}

std::uint64_t inline_by_hand(std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t left = size; left != 0; --left) {
        int result = static_cast<int>(left & 7);
        bench::keep(result);
        sum += static_cast<std::uint64_t>(result);
    }
    return bench::hash().add(sum).value();
}

}  // namespace bench_token
