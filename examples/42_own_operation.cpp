// An operation of your own, on a system that completes through a function pointer.
#include <coppice/coppice.hpp>

#include <cstdio>
#include <deque>

using namespace coppice;

namespace {

// [system]
// The interface of a device driver, which calls back with the context that it was given.
struct device_context {
    void (*callback)(int result, device_context*) = nullptr;
};
struct device {
    struct request {
        int parameter;
        device_context* context;
    };
    std::deque<request> requests;
    void start(int parameter, device_context* context) { requests.push_back({parameter, context}); }
    void run() {
        while (!requests.empty()) {
            const request r = requests.front();
            requests.pop_front();
            r.context->callback(r.parameter < 0 ? -1 : r.parameter * 2, r.context);
        }
    }
};
// [/system]

// [operation]
// Movable until it is called. From then on it stays in place until the operation completes, so it
// can be the context that the device needs meanwhile, and nothing is allocated.
class doubling : device_context {
public:
    static constexpr bool completes_inside = false;  // start() never calls back: costs less
    doubling(device& d, int parameter) noexcept : device_(&d), parameter_(parameter) {}

    void operator()(completion<int> done) noexcept {
        done_ = done;
        callback = [](int result, device_context* context) {
            completion<int> c = static_cast<doubling*>(context)->done_;
            const std::error_code error =
                result < 0 ? std::make_error_code(std::errc::io_error) : no_error;
            std::move(c)(error, result);  // last: *context may be gone
        };
        device_->start(parameter_, this);
    }

private:
    device* device_;
    int parameter_;
    completion<int> done_;
};

template <class Token = use_await_t>
auto double_it(device& d, int n, Token&& token = {}) noexcept(nothrow_token<Token>) {
    return completion_token_transform<void(std::error_code, int)>(static_cast<Token&&>(token),
                                                                  doubling(d, n));
}
// [/operation]

// [direct]
// The same as a template, for waiters whose type the compiler knows: the completion is not stored,
// and the waiter is called directly.
class tripling : device_context {
public:
    static constexpr bool completes_inside = false;
    tripling(device& d, int parameter) noexcept : device_(&d), parameter_(parameter) {}

    template <class Completion>
    void operator()(Completion) noexcept {
        callback = [](int result, device_context* context) {
            tripling& self = *static_cast<tripling*>(context);
            const int tripled = result + self.parameter_;
            Completion::of(self)(no_error, tripled);  // last: self may be gone
        };
        device_->start(parameter_, this);
    }

private:
    device* device_;
    int parameter_;
};

template <class Token = use_await_t>
auto triple_it(device& d, int n, Token&& token = {}) noexcept(nothrow_token<Token>) {
    return completion_token_transform<void(std::error_code, int)>(static_cast<Token&&>(token),
                                                                  tripling(d, n));
}
// [/direct]

task<> use(device& d) {
    std::printf("awaited %d\n", co_await double_it(d, 21));
    std::printf("awaited directly %d\n", co_await triple_it(d, 14));
    try {
        co_await double_it(d, -1);
    } catch (const std::system_error& e) {
        std::puts("thrown");
    }
}

}  // namespace

int main() {
    device d;
    execution::counting_scope scope;
    execution::spawn(use(d), scope.get_token(), [](auto&&) noexcept {});
    double_it(d, 4, [](std::error_code, int n) { std::printf("called back %d\n", n); });
    std::future<int> future = double_it(d, 5, use_future);
    d.run();
    std::printf("future %d\n", future.get());
    this_thread::sync_wait(scope.join());
}
