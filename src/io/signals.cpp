// Receives the process's signals for the sets that wait for them; for system_calls.cpp. A handler
// notes a signal for each set that asked for it, and wakes the set's loop. It therefore does not
// matter which thread the kernel runs the handler on, nor when threads were made. If all of the
// program's threads block a signal, a thread of this file receives it; that thread exists while a
// set lives.
//
// What the handler touches is never freed. It is a list of sources that only grows; each source has
// a descriptor number that is never closed. While a set uses the source, that number refers to the
// set's eventfd. When the set ends, the source is free for the next set. A late handler therefore
// wakes no loop, or wakes the loop of the set's successor, which finds nothing.
#include "signals.hpp"

#include <coppice/base/internal/atomic.hpp>

#include <coppice/base/lifetime.hpp>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <new>

namespace coppice::io {

using namespace internal;

namespace {

constexpr int signals_max = 64;
constexpr std::uint64_t bit_of(int signal) noexcept {
    return std::uint64_t{1} << (signal - 1);
}
sigset_t set_of(std::uint64_t bits) noexcept {
    sigset_t set;
    ::sigemptyset(&set);
    for (int s = 1; s <= signals_max; ++s) {
        if ((bits & bit_of(s)) != 0) ::sigaddset(&set, s);
    }
    return set;
}
void write_one(int event) noexcept {
    const std::uint64_t one = 1;
    (void)!::write(event, &one, sizeof one);  // full: it is readable already
}
void read_all(int event) noexcept {
    std::uint64_t count;
    (void)!::read(event, &count, sizeof count);  // empty: there is nothing to drop
}
std::error_code last_error() noexcept {
    return {errno, std::system_category()};
}

// What one set receives.
class source final : public received_signals {
public:
    explicit source(int event) noexcept : event_(event) {}

    // Called in a handler when the signal has come.
    void note(int signal) noexcept {
        // relaxed: only says which set wants it; a set that has ended meanwhile drops it
        if ((wanted_.load(relaxed) & bit_of(signal)) == 0) return;
        // edge signals.come (release): what the sender did; pairs with take()
        const std::uint64_t before = come_.fetch_or(bit_of(signal), release);
        if ((before & bit_of(signal)) == 0) write_one(event_);
    }
    // Receives the lowest number first, as signalfd(2) does. If more signals have come, the
    // descriptor becomes readable again.
    int take() noexcept override {
        // relaxed: the acquire is below
        const std::uint64_t here = come_.load(relaxed) & wanted_.load(relaxed);
        if (here == 0) return 0;
        const int signal = std::countr_zero(here) + 1;
        // edge signals.come (acquire): what the sender did
        come_.fetch_and(~bit_of(signal), acquire);
        if ((here & ~bit_of(signal)) != 0) write_one(event_);
        return signal;
    }
    void keep() noexcept override {
        if (come_.load(relaxed) != 0) write_one(event_);  // relaxed: take() looks again
    }
    void end() noexcept override;

    result<int> descriptor() noexcept override { return std::exchange(own_, -1); }
    // Starts a new set, before the handler can record anything for it. The set gets a new eventfd,
    // because a ring that knew the previous one may still know it.
    std::error_code begin(std::uint64_t wanted) noexcept {
        own_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (own_ < 0) return last_error();
        ::dup3(own_, event_, O_CLOEXEC);
        come_.store(0, relaxed);  // relaxed: the handler only adds bits
        // relaxed: the handler is installed, or can reach the source, only later
        wanted_.store(wanted, relaxed);
        return {};
    }
    // Ends the set, and returns the signals that it received; 0 if it has already ended. `nowhere`:
    // the eventfd that takes the place of the set's.
    std::uint64_t give_up(int nowhere) noexcept {
        const std::uint64_t wanted = wanted_.exchange(0, relaxed);  // relaxed: as above
        if (wanted == 0) return 0;
        ::dup3(nowhere, event_, O_CLOEXEC);
        if (own_ >= 0) ::close(std::exchange(own_, -1));
        return wanted;
    }

    // in the list of all sources; written before the source is published
    source* next = nullptr;
    source* next_free = nullptr;  // guarded by the mutex

private:
    const int event_;
    int own_ = -1;                     // the set's eventfd, until descriptor() hands it out
    atomic<std::uint64_t> wanted_{0};  // signals as bits; 0: no set uses the source
    atomic<std::uint64_t> come_{0};    // set by handlers, cleared by the set's loop
};

// One object for the process. Threads: any, under the mutex; the handler only reads all_ and
// owner_.
class process_signals {
public:
    static process_signals& instance() {
        static process_signals* const one = new process_signals();  // handlers outlive statics
        return *one;
    }

    result<received_signals*> receive(std::uint64_t wanted) noexcept {
        const std::lock_guard lock(mutex_);
        if (const std::error_code error = start_thread()) return error;
        const result<source*> made = free_source();
        if (!made) {
            if (asked_ == 0) end_thread();
            return made.error();
        }
        source& s = *made.value();
        if (const std::error_code error = s.begin(wanted)) {
            forget(s, 0);
            return error;
        }
        for (int signal = 1; signal <= signals_max; ++signal) {
            if ((wanted & bit_of(signal)) == 0 || users_[index(signal)]++ != 0) continue;
            if (const std::error_code error = install(signal)) {
                --users_[index(signal)];
                forget(s, s.give_up(control_) & (bit_of(signal) - 1));
                return error;
            }
        }
        take_pending(wanted);
        return &s;
    }
    void end(source& s) noexcept {
        const std::lock_guard lock(mutex_);
        if (const std::uint64_t wanted = s.give_up(control_)) forget(s, wanted);
    }

private:
    process_signals() {
        ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                         [] { instance().forget_all(); });
    }
    static std::size_t index(int signal) noexcept { return static_cast<std::size_t>(signal - 1); }

    static void handle(int signal) noexcept {
        const int before = errno;
        process_signals& self = instance();
        // A child of vfork() shares this memory until its exec, and is not served.
        if (self.owner_.load(relaxed) == ::getpid()) {  // relaxed: nothing is read by it
            // edge signals.list (acquire): the source
            for (source* s = self.all_.load(acquire); s != nullptr; s = s->next) s->note(signal);
        }
        errno = before;
    }
    // Returns true for a signal that would recur at once if its handler returned; such a signal
    // cannot be waited for.
    static bool is_fault(int signal) noexcept {
        return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
               signal == SIGTRAP;
    }
    std::error_code install(int signal) noexcept {
        if (is_fault(signal)) return std::make_error_code(std::errc::invalid_argument);
        owner_.store(::getpid(), relaxed);  // relaxed: written before the handler can run
        struct sigaction action{};
        action.sa_handler = &handle;
        action.sa_flags = SA_RESTART | SA_ONSTACK;
        ::sigfillset(&action.sa_mask);
        if (::sigaction(signal, &action, &before_[index(signal)]) != 0) return last_error();
        watch(asked_ | bit_of(signal));
        return {};
    }
    // Restores the handler that was there before, unless the program has installed another one
    // meanwhile.
    void restore(int signal) noexcept {
        struct sigaction now{};
        const bool ours = ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == &handle;
        if (ours) ::sigaction(signal, &before_[index(signal)], nullptr);
    }
    void forget(source& s, std::uint64_t wanted) noexcept {
        std::uint64_t gone = 0;
        for (int signal = 1; signal <= signals_max; ++signal) {
            if ((wanted & bit_of(signal)) == 0 || --users_[index(signal)] != 0) continue;
            restore(signal);
            gone |= bit_of(signal);
        }
        s.next_free = free_;
        free_ = &s;
        watch(asked_ & ~gone);
        if (asked_ == 0) end_thread();
    }
    result<source*> free_source() noexcept {
        if (free_ != nullptr) return std::exchange(free_, free_->next_free);
        const int event = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (event < 0) return last_error();
        source* const s = try_new<source>(event);
        if (s == nullptr) {
            ::close(event);
            return std::make_error_code(std::errc::not_enough_memory);
        }
        s->next = all_.load(relaxed);  // relaxed: written under the mutex
        // edge signals.list (release): the source; pairs with the handler
        all_.store(s, release);
        return s;
    }
    // Takes signals that are already pending because this thread blocks them.
    static void take_pending(std::uint64_t wanted) noexcept {
        const sigset_t set = set_of(wanted);
        const timespec at_once{};
        for (int signal; (signal = ::sigtimedwait(&set, nullptr, &at_once)) > 0;) handle(signal);
    }

    // ---- The thread that takes what all others block ------------------------------------------

    std::error_code start_thread() noexcept {
        if (has_thread_) return {};
        if (control_ < 0) control_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (control_ < 0) return last_error();
        read_all(control_);
        ending_.store(false, relaxed);  // relaxed: the thread does not exist yet
        sigset_t all, before;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);
        const int failed = ::pthread_create(
            &thread_, nullptr,
            [](void* self) -> void* {
                static_cast<process_signals*>(self)->take_signals();
                return nullptr;
            },
            this);
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        if (failed != 0) return {failed, std::system_category()};
        has_thread_ = true;
        ::pthread_setname_np(thread_, "coppice-signal");
        return {};
    }
    void end_thread() noexcept {
        if (!std::exchange(has_thread_, false)) return;
        ending_.store(true, relaxed);  // relaxed: the thread looks again when it is woken
        write_one(control_);
        ::pthread_join(thread_, nullptr);
    }
    void watch(std::uint64_t wanted) noexcept {
        asked_ = wanted;
        watched_.store(wanted, relaxed);  // relaxed: as above
        write_one(control_);
    }
    void take_signals() noexcept {
        while (!ending_.load(relaxed)) {  // relaxed: it only decides whether to continue
            sigset_t blocked;
            ::sigfillset(&blocked);
            const std::uint64_t open = watched_.load(relaxed);  // relaxed: as above
            for (int s = 1; s <= signals_max; ++s) {
                if ((open & bit_of(s)) != 0) ::sigdelset(&blocked, s);
            }
            pollfd control{control_, POLLIN, 0};
            if (::ppoll(&control, 1, nullptr, &blocked) > 0) read_all(control_);
        }
    }

    // Called in a child of fork(): the sets belong to the parent.
    void forget_all() noexcept {
        for (int signal = 1; signal <= signals_max; ++signal) {
            if (std::exchange(users_[index(signal)], 0) != 0) restore(signal);
        }
        all_.store(nullptr, relaxed);  // relaxed: the child has one thread
        free_ = nullptr;
        asked_ = 0;
        watched_.store(0, relaxed);  // relaxed: as above
        has_thread_ = false;
        control_ = -1;
        owner_.store(0, relaxed);  // relaxed: as above
        mutex_.unlock();
    }

    std::mutex mutex_;  // guards all members except the atomics
    std::uint64_t asked_ = 0;
    std::array<std::size_t, signals_max> users_{};  // how many sets want each signal
    std::array<struct sigaction, signals_max> before_{};
    source* free_ = nullptr;
    bool has_thread_ = false;
    pthread_t thread_{};
    int control_ = -1;  // an eventfd that wakes the thread; written before the thread starts

    atomic<source*> all_{nullptr};      // the newest source; sources are never freed
    atomic<pid_t> owner_{0};            // the process that installed these handlers
    atomic<std::uint64_t> watched_{0};  // signals that the thread does not block
    atomic<bool> ending_{false};        // set to end the thread
};

void source::end() noexcept {
    process_signals::instance().end(*this);
}

}  // namespace

result<received_signals*> receive_process_signals(std::span<const int> signals) noexcept {
    std::uint64_t wanted = 0;
    for (const int s : signals) {
        if (s < 1 || s > signals_max) return std::make_error_code(std::errc::invalid_argument);
        wanted |= bit_of(s);
    }
    try {
        return process_signals::instance().receive(wanted);
    } catch (const std::bad_alloc&) {
        return std::make_error_code(std::errc::not_enough_memory);
    }
}

}  // namespace coppice::io
