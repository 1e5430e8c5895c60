// Runs tests of this executable again in a process that may not make some system call.
#pragma once
// What a system has is found out when a program starts or makes its first object, so the child is
// put under a filter and executes itself anew.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>

namespace coppice::test {

enum class rerun { passed, failed, impossible };  // impossible: the system has no filters

// In that process: the call that is missing; elsewhere -1.
inline long missing_call() {
    const char* const number = std::getenv("COPPICE_TEST_WITHOUT_CALL");
    return number == nullptr ? -1 : std::strtol(number, nullptr, 10);
}

// From now on the call fails with `error` in this process. False: the system has no filters.
inline bool forbid(unsigned call, unsigned error) {
    ::sock_filter code[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | error},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    const ::sock_fprog program{sizeof code / sizeof *code, code};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// The tests that `filter` names, as --gtest_filter has it; the call fails with `error`.
inline rerun without_call(unsigned call, unsigned error, const std::string& filter) {
    const std::string argument = "--gtest_filter=" + filter;
    const std::string number = std::to_string(call);
    const pid_t child = ::fork();
    if (child == 0) {
        if (!forbid(call, error)) ::_exit(77);
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
