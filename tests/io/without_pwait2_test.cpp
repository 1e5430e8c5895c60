// The epoll ring where epoll_pwait2(2) is missing, or a sandbox refuses it.
#include <coppice/io/context.hpp>

#include "without_call.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace {

void passes_again(int error) {
    std::string filter;
    for (const char* const suite :
         {"context_on", "socket_on", "stream_on", "stop_on", "datagram_on", "tokens_on"}) {
        filter += ":rings/" + std::string(suite) + ".*/epoll";
    }
    coppice::test::expect_passes_without(SYS_epoll_pwait2, error, filter.substr(1));
}

TEST(old_kernel, without_the_call_the_loop_waits_in_milliseconds) {
    passes_again(ENOSYS);
}
TEST(old_kernel, a_sandbox_that_refuses_the_call_counts_as_an_old_kernel) {
    passes_again(EPERM);
}

}  // namespace
