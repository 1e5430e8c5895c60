// signal_set: waits for POSIX signals as an operation of a loop.
#pragma once
// A signal handler records the signal and wakes the loop, on whichever thread the kernel runs the
// handler. A set therefore works whether the program's threads were started before it or block the
// signal. While any set lives, the library keeps a thread named coppice-signal, which receives the
// signals that all other threads block.

#include <coppice/io/context.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/signal_request.hpp>
#include <coppice/io/open_file.hpp>

#include <initializer_list>
#include <span>
#include <utility>

namespace coppice::io {

// Receives its signals as long as it lives. Every set that names a signal receives it, in any
// context. A signal that comes again before it was received counts once. A signal that is already
// pending for the thread that makes the set is received too. When the last set of a signal is
// destroyed, the handler that was installed before is restored, unless the program has installed
// another one meanwhile. The restored handler is not called for signals that came while a set
// lived. A child made by fork() has the handlers from before the sets, and its copies of the sets
// receive nothing. In a simulation, a set receives what simulation::raise() sends, and the
// process's own signals are left alone.
// Limits: SIGKILL, SIGSTOP, and faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP) cannot be
// received. A signal sent with pthread_kill to a thread that blocks it stays with that thread.
// System calls that do not restart (poll, nanosleep) may fail with EINTR on threads that do not
// block the signal.
// Errors: std::system_error.
class signal_set : public open_file {
public:
    // Receives the signals from now on. Cost: one thread, shared by all sets.
    signal_set(context& owner, std::initializer_list<int> signals);
    signal_set(context& owner, std::span<const int> signals);
    signal_set(signal_set&& other) noexcept
        : open_file(std::move(other)), signals_(std::exchange(other.signals_, nullptr)) {}
    signal_set& operator=(signal_set&& other) noexcept {
        if (this == &other) return *this;
        close();
        open_file::operator=(std::move(other));
        signals_ = std::exchange(other.signals_, nullptr);
        return *this;
    }
    ~signal_set() { close(); }

    // Ends pending waits with operation_canceled, and stops receiving.
    void close() noexcept {
        open_file::close();
        if (signals_ != nullptr) std::exchange(signals_, nullptr)->end();
    }

    // Waits for a signal; the value is its number. At most one wait may be pending; a second one
    // ends the process. A wait that is stopped has received nothing.
    template <class Token = use_await_t>
    auto wait(Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::signal_request>(
            internal::signal_request::arguments(reference(), signals_),
            static_cast<Token&&>(token));
    }

private:
    struct opened;
    explicit signal_set(const opened& o) noexcept;

    internal::received_signals* signals_;
};

}  // namespace coppice::io
