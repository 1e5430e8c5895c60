// The epoll ring where epoll_pwait2(2) is missing, or a sandbox refuses it.
#include <coppice/io/context.hpp>

#include "without_call.hpp"

#include <gtest/gtest.h>

#include <sys/epoll.h>
#include <cerrno>
#include <string>

namespace {

using coppice::test::rerun;

constexpr const char* in_force = "old_kernel.is_in_force";

void passes_again(unsigned error) {
    if (coppice::test::missing_call() >= 0) GTEST_SKIP() << "the child does not ask again";
    std::string filter = in_force;
    for (const char* const suite :
         {"context_on", "socket_on", "stream_on", "stop_on", "datagram_on", "tokens_on"}) {
        filter += ":rings/" + std::string(suite) + ".*/epoll";
    }
    const rerun outcome = coppice::test::without_call(SYS_epoll_pwait2, error, filter);
    if (outcome == rerun::impossible) GTEST_SKIP() << "the system has no filters";
    EXPECT_EQ(outcome, rerun::passed);
}

// Means something in the process that the others start.
TEST(old_kernel, is_in_force) {
    if (coppice::test::missing_call() != SYS_epoll_pwait2) GTEST_SKIP() << "the call is allowed";
    epoll_event event;
    EXPECT_EQ(::epoll_pwait2(-1, &event, 1, nullptr, nullptr), -1);
    EXPECT_TRUE(errno == ENOSYS || errno == EPERM) << errno;
}

TEST(old_kernel, without_the_call_the_loop_waits_in_milliseconds) {
    passes_again(ENOSYS);
}
TEST(old_kernel, a_sandbox_that_refuses_the_call_is_taken_for_one) {
    passes_again(EPERM);
}

}  // namespace
