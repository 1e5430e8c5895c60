// broken_pipe_block: blocks SIGPIPE on a thread while it runs a loop; for event_loop.cpp.
#pragma once
// send(2) has MSG_NOSIGNAL, but sendfile(2), and write(2) to a pipe, have no such flag. Without the
// block, a peer that closes its connection could end the process. The kernel sends SIGPIPE to the
// thread that made the call.

#include <coppice/base/lifetime.hpp>

#include <signal.h>
#include <ctime>

namespace coppice::io {

// Threads: constructed and destroyed on the same thread. Cost: two or three system calls in all.
class broken_pipe_block : immovable {
public:
    broken_pipe_block() noexcept {
        ::sigemptyset(&broken_pipe_);
        ::sigaddset(&broken_pipe_, SIGPIPE);
        sigset_t before;
        ::pthread_sigmask(SIG_BLOCK, &broken_pipe_, &before);
        was_blocked_ = ::sigismember(&before, SIGPIPE) == 1;
        was_pending_ = was_blocked_ && is_pending();
    }
    // Drops a SIGPIPE that a call has raised meanwhile. Leaves a SIGPIPE that was pending before.
    ~broken_pipe_block() {
        const timespec at_once{};
        if (!was_pending_) (void)::sigtimedwait(&broken_pipe_, nullptr, &at_once);
        if (!was_blocked_) ::pthread_sigmask(SIG_UNBLOCK, &broken_pipe_, nullptr);
    }

private:
    static bool is_pending() noexcept {
        sigset_t pending;
        return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGPIPE) == 1;
    }

    sigset_t broken_pipe_;
    bool was_blocked_;
    bool was_pending_;
};

}  // namespace coppice::io
