// The memory that a call adds to the process at its peak, as the kernel counts it.
#pragma once
// The counter of the peak is reset before the call (a 5 written to clear_refs, Linux 4.0), so the
// figure has pages that the call touched and gave back. It has a granularity of pages, and lacks
// what the allocator had kept from before: call it on a process that has freed nothing large.

#include <cstdio>
#include <cstring>

namespace bench {

// Returns a field of /proc/self/status in MB (1e6 bytes), or -1 if it is not there.
inline double status_megabytes(const char* field) {
    std::FILE* const status = std::fopen("/proc/self/status", "r");
    if (status == nullptr) return -1;
    char line[256];
    unsigned long long kib = 0;
    bool found = false;
    const std::size_t size = std::strlen(field);
    while (!found && std::fgets(line, sizeof line, status) != nullptr) {
        found = std::strncmp(line, field, size) == 0 && line[size] == ':' &&
                std::sscanf(line + size + 1, "%llu", &kib) == 1;
    }
    std::fclose(status);
    return found ? static_cast<double>(kib) * 1024 / 1e6 : -1;
}

// Calls `f`. Returns what the process's resident memory grew by at its peak, in MB, or -1 if the
// kernel does not say.
template <class F>
double peak_megabytes(const F& f) {
    std::FILE* const reset = std::fopen("/proc/self/clear_refs", "w");
    bool can = reset != nullptr && std::fputs("5", reset) >= 0;
    if (reset != nullptr) can = std::fclose(reset) == 0 && can;
    const double before = status_megabytes("VmRSS");
    f();
    const double peak = status_megabytes("VmHWM");
    if (!can || before < 0 || peak < 0) return -1;
    return peak > before ? peak - before : 0;
}

}  // namespace bench
