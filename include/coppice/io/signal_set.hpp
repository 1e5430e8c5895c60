// signal_set: waits for POSIX signals as an operation of a loop.
#pragma once

#include <coppice/io/stream.hpp>

#include <sys/signalfd.h>
#include <initializer_list>

namespace coppice::io {

// Gives the number of the signal that came.
class signal_request : public descriptor_request<> {
public:
    using value_type = int;
    static constexpr const char* name = "wait for a signal";
    struct arguments {
        explicit arguments(const descriptor_reference& f) noexcept : file(f) {}
        descriptor_reference file;
    };
    explicit signal_request(const arguments& a) noexcept
        : descriptor_request<>(a.file, opcode::read) {
        data = reinterpret_cast<std::byte*>(&info_);
        size = sizeof info_;
    }
    int take() const noexcept { return outcome() < 0 ? 0 : static_cast<int>(info_.ssi_signo); }

protected:
    ~signal_request() = default;

private:
    signalfd_siginfo info_{};
};

// While it lives, the signals are blocked on the thread that made it, and on those it starts
// afterwards, and are received here. Make it before other threads. The end unblocks nothing. In a
// simulation: what simulation::raise() sends, and the process is left alone.
// Errors: std::system_error.
class signal_set : public open_file {
public:
    // Blocks the signals and opens a descriptor for them.
    signal_set(context& owner, std::initializer_list<int> signals);

    // One wait may be pending.
    template <class Token = use_await_t>
    auto wait(Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<signal_request>(signal_request::arguments(reference()),
                                        static_cast<Token&&>(token));
    }
};

}  // namespace coppice::io
