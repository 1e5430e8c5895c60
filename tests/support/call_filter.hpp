// Filters on this process's system calls (seccomp(2)), for tests that must do without some.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <cstdint>

namespace coppice::test {

// From now on the kernel answers `call` with one action, SECCOMP_RET_..., and all other calls with
// the other. Permanent, also for programs that the process executes. Returns false if the system
// has no filters.
[[nodiscard]] inline bool filter_calls(std::uint32_t call, std::uint32_t action,
                                       std::uint32_t others = SECCOMP_RET_ALLOW) {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, others),
    };
    const sock_fprog program{sizeof code / sizeof *code, code};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace coppice::test
