// Runs tests of this executable again in a process that may not call membarrier(2).
#pragma once
// Whether light fences are free (base/asymmetric.hpp) is decided when a program starts, so the
// child is put under a filter and executes itself anew.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>

namespace coppice::test {

enum class rerun { passed, failed, impossible };  // impossible: the system has no filters

// The tests that `filter` names, as --gtest_filter has it.
inline rerun without_membarrier(const std::string& filter) {
    const std::string argument = "--gtest_filter=" + filter;
    const pid_t child = ::fork();
    if (child == 0) {
        ::sock_filter code[] = {
            {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
            {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_membarrier},
            {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
            {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
        };
        const ::sock_fprog program{sizeof code / sizeof *code, code};
        if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
            ::_exit(77);
        }
        ::setenv("COPPICE_TEST_WITHOUT_MEMBARRIER", "1", 1);
        ::execl("/proc/self/exe", "tests", argument.c_str(), "--gtest_brief=1", nullptr);
        ::_exit(1);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return rerun::failed;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return rerun::impossible;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? rerun::passed : rerun::failed;
}

}  // namespace coppice::test
