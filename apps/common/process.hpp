// What the servers in apps ask of their process before they serve.
#pragma once

#include <sys/resource.h>
#include <csignal>

namespace common {

// Permits as many descriptors as the system does, because every connection needs one, and makes a
// write to a closed pipe an error instead of the end. Threads: one, before any other begins.
inline void prepare_process() noexcept {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &limit);
    }
    std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace common
