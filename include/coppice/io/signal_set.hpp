// signal_set: waits for POSIX signals as an operation of a loop.
#pragma once
// A handler notes the signal and wakes the loop, whichever thread the kernel takes: so a set works
// beside threads that were made before it, and beside threads that block the signal. While a set
// lives there is a thread of its own, coppice-signal, for the case that all others block it.

#include <coppice/base/check.hpp>
#include <coppice/io/stream.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

namespace coppice::io {

// Gives the number of the signal that came.
class signal_request : public descriptor_request<> {
public:
    using value_type = int;
    static constexpr const char* name = "wait for a signal";
    struct arguments {
        arguments(const descriptor_reference& f, received_signals* s) noexcept
            : file(f), signals(s) {}
        descriptor_reference file;
        received_signals* signals;
    };
    explicit signal_request(const arguments& a) noexcept
        : descriptor_request<>(a.file, opcode::read), signals_(a.signals) {
        data = reinterpret_cast<std::byte*>(&count_);
        size = sizeof count_;
    }
    int take() const noexcept { return signal_; }

protected:
    ~signal_request() = default;

private:
    bool submit() noexcept final {
        COPPICE_CHECK(!is_second(), "two waits at once on one io::signal_set");
        return descriptor_request<>::submit();
    }
    // One that has to end takes nothing from the next.
    int judge(int returned) noexcept final {
        if (returned < 0) return returned;
        if (stop_came()) {
            signals_->keep();
            return -ECANCELED;
        }
        signal_ = signals_->take();
        return signal_ == 0 ? -EAGAIN : 0;
    }

    received_signals* signals_;
    std::uint64_t count_ = 0;
    int signal_ = 0;
};

// While it lives, the signals are received here: by each set that names them, in whatever context.
// One that comes again before it was received is one; what was pending for the thread that makes
// the set has come already. The handler that was installed before comes back with the end of the
// last set of its signal, unless somebody has installed another one meanwhile; it is not called.
// A child that fork() makes has the handlers from before, and receives nothing here. In a
// simulation: what simulation::raise() sends, and the process is left alone.
// Limits: not for SIGKILL, SIGSTOP and faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP). A signal
// that is sent to one thread (pthread_kill) which blocks it stays there. System calls that do not
// restart (poll, nanosleep) may end with EINTR on threads that do not block the signal.
// Errors: std::system_error.
class signal_set : public open_file {
public:
    // Receives the signals from now on. Cost: a thread, for all sets together.
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

    // Ends pending waits with operation_canceled, and receives nothing any more.
    void close() noexcept {
        open_file::close();
        if (signals_ != nullptr) std::exchange(signals_, nullptr)->end();
    }

    // One wait may be pending: a second one stops the process. A wait that is stopped has received
    // nothing.
    template <class Token = use_await_t>
    auto wait(Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<signal_request>(signal_request::arguments(reference(), signals_),
                                        static_cast<Token&&>(token));
    }

private:
    struct opened;
    explicit signal_set(const opened& o) noexcept;

    received_signals* signals_;
};

}  // namespace coppice::io
