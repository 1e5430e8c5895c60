// SIGPIPE and the threads that run a loop: a call without MSG_NOSIGNAL does not end the process.
#include <coppice/io/context.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <array>
#include <cerrno>

namespace {

using namespace coppice;

class broken_pipe : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0);
        ::close(ends_[0]);
        struct sigaction ends_the_process{};
        ends_the_process.sa_handler = SIG_DFL;
        ::sigaction(SIGPIPE, &ends_the_process, &before_);
        ::sigemptyset(&signal_);
        ::sigaddset(&signal_, SIGPIPE);
    }
    void TearDown() override {
        const timespec at_once{};
        (void)::sigtimedwait(&signal_, nullptr, &at_once);
        ::pthread_sigmask(SIG_UNBLOCK, &signal_, nullptr);
        ::sigaction(SIGPIPE, &before_, nullptr);
        ::close(ends_[1]);
    }

    // A completion that writes to a pipe without a reader.
    struct write_on_the_loop : io::operation {
        explicit write_on_the_loop(int to) noexcept : operation(&write), file(to) {}
        static void write(operation* op) noexcept {
            auto& self = *static_cast<write_on_the_loop*>(op);
            self.error = ::write(self.file, "x", 1) < 0 ? errno : 0;
        }
        int file;
        int error = 0;
    };
    void break_it_on(io::backend kind) {
        io::context loop(kind);
        write_on_the_loop op(ends_[1]);
        loop.post(op);
        loop.run();
        EXPECT_EQ(op.error, EPIPE);
    }
    static bool is_blocked() {
        sigset_t mask;
        ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        return ::sigismember(&mask, SIGPIPE) == 1;
    }
    static bool is_pending() {
        sigset_t pending;
        ::sigpending(&pending);
        return ::sigismember(&pending, SIGPIPE) == 1;
    }

    std::array<int, 2> ends_{};
    struct sigaction before_{};
    sigset_t signal_{};
};

TEST_F(broken_pipe, does_not_end_the_process_and_leaves_the_mask_as_it_was) {
    for (const io::backend kind : {io::backend::epoll, io::backend::automatic}) {
        break_it_on(kind);
        EXPECT_FALSE(is_blocked());
        EXPECT_FALSE(is_pending());
    }
}

TEST_F(broken_pipe, a_thread_that_blocks_the_signal_still_blocks_it_and_finds_none_pending) {
    ::pthread_sigmask(SIG_BLOCK, &signal_, nullptr);
    break_it_on(io::backend::automatic);
    EXPECT_TRUE(is_blocked());
    EXPECT_FALSE(is_pending());
}

TEST_F(broken_pipe, a_signal_that_was_pending_before_is_pending_afterwards) {
    ::pthread_sigmask(SIG_BLOCK, &signal_, nullptr);
    ::pthread_kill(::pthread_self(), SIGPIPE);
    break_it_on(io::backend::automatic);
    EXPECT_TRUE(is_blocked());
    EXPECT_TRUE(is_pending());
}

}  // namespace
