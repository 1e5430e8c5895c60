// Runs tests of this executable again in a process that may not make some system call.
#pragma once
// What a system has is found out when a program starts or makes its first object, so the child is
// put under a filter and executes itself anew.

#include "call_filter.hpp"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

namespace coppice::test {

enum class rerun { passed, failed, impossible };  // impossible: the system has no filters

// In that process: the call that is missing; elsewhere -1.
inline long missing_call() {
    const char* const number = std::getenv("COPPICE_TEST_WITHOUT_CALL");
    return number == nullptr ? -1 : std::strtol(number, nullptr, 10);
}

// The tests that `filter` names, as --gtest_filter has it; the call fails with `error`.
inline rerun without_call(unsigned call, unsigned error, const std::string& filter) {
    const std::string argument = "--gtest_filter=" + filter;
    const std::string number = std::to_string(call);
    const pid_t child = ::fork();
    if (child == 0) {
        if (!filter_calls(call, SECCOMP_RET_ERRNO | error)) ::_exit(77);
        ::setenv("COPPICE_TEST_WITHOUT_CALL", number.c_str(), 1);
        ::execl("/proc/self/exe", "tests", argument.c_str(), "--gtest_brief=1", nullptr);
        ::_exit(1);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return rerun::failed;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return rerun::impossible;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? rerun::passed : rerun::failed;
}

}  // namespace coppice::test
