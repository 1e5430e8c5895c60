// signal_set: waits for POSIX signals as an operation of a loop.
#pragma once

#include <coppice/io/socket.hpp>

#include <sys/signalfd.h>
#include <initializer_list>

namespace coppice::io {

// Gives the number of the signal that came.
class [[nodiscard]] signal_operation final : public await_operation {
public:
    signal_operation(descriptor* d, await_errors errors) noexcept
        : await_operation(d, opcode::read, errors) {}
    bool await_suspend(std::coroutine_handle<> coroutine) noexcept {
        data = reinterpret_cast<std::byte*>(&info_);
        size = sizeof info_;
        return await_operation::await_suspend(coroutine);
    }
    int await_resume() const {
        report("wait for a signal");
        return result < 0 ? 0 : static_cast<int>(info_.ssi_signo);
    }

private:
    signalfd_siginfo info_{};
};

// While it lives, the signals are blocked on the thread that made it, and on those it starts
// afterwards, and are received here. Make it before other threads. The end unblocks nothing.
// Errors: std::system_error.
class signal_set {
public:
    signal_set(context& owner, std::initializer_list<int> signals);
    ~signal_set() { close(); }
    signal_set(const signal_set&) = delete;
    signal_set& operator=(const signal_set&) = delete;

    signal_operation wait(await_errors errors = use_await) noexcept {
        return {descriptor_, errors};
    }
    // Ends a pending wait with operation_canceled.
    void close() noexcept {
        if (descriptor_ != nullptr) owner_->close(*std::exchange(descriptor_, nullptr));
    }

private:
    context* owner_;
    descriptor* descriptor_ = nullptr;
};

}  // namespace coppice::io
