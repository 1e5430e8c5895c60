// How a fuzzer reports a finding.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace coppice::test {

// Stops the fuzzer, which then keeps the input, unless `holds`.
inline void verify(bool holds, const std::string& what) {
    if (holds) return;
    std::fprintf(stderr, "%s\n", what.c_str());
    std::abort();
}

inline void verify_equal(const std::string& got, const std::string& wanted,
                         const std::string& what) {
    verify(got == wanted, what + ":\n" + got + "\ninstead of\n" + wanted);
}

}  // namespace coppice::test
