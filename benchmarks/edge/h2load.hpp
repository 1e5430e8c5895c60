// h2load, nghttp2's load generator: HTTP/2 in the clear, begun without HTTP/1.1.
#pragma once

#include <cstdint>

namespace bench_edge {

struct h2_result {
    std::uint64_t requests = 0;  // answered with 2xx
    std::uint64_t failures = 0;
    double per_second = 0;
};

// Returns true if h2load is installed.
bool has_h2load();
// Runs it on the last processor for `seconds`: `connections` with `streams` requests at once on
// each. With `seconds` of 0: for `requests` requests. Exits the program if it does not run.
h2_result h2load(int port, int connections, int streams, int seconds, int requests = 0);

}  // namespace bench_edge
