// Runs h2load, and reads what it prints.
#include "h2load.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace bench_edge {

bool has_h2load() {
    return std::system("command -v h2load >/dev/null 2>&1") == 0;
}

h2_result h2load(int port, int connections, int streams, int seconds, int requests) {
    const std::string bound =
        seconds != 0 ? "-D" + std::to_string(seconds) : "-n" + std::to_string(requests);
    const std::string command = "exec taskset -c $(($(nproc) - 1)) h2load -t1 -c" +
                                std::to_string(connections) + " -m" + std::to_string(streams) +
                                " " + bound + " http://127.0.0.1:" + std::to_string(port) +
                                "/plaintext 2>&1";
    std::FILE* const output = ::popen(command.c_str(), "r");
    h2_result result;
    char line[512];
    while (output != nullptr && std::fgets(line, sizeof line, output) != nullptr) {
        unsigned long long done = 0, good = 0, failed = 0, errors = 0, late = 0;
        if (std::sscanf(line,
                        "requests: %*u total, %*u started, %llu done, %llu succeeded, %llu failed, "
                        "%llu errored, %llu timeout",
                        &done, &good, &failed, &errors, &late) == 5) {
            result.requests = good;
            result.failures = failed + errors + late;
        }
        double rate = 0;
        if (std::sscanf(line, "finished in %*[^,], %lf req/s", &rate) == 1) {
            result.per_second = rate;
        }
    }
    const bool ran = output != nullptr && ::pclose(output) == 0;
    if (!ran || result.requests == 0) {
        std::fprintf(stderr, "bench_edge: h2load did not run (package nghttp2-client)\n");
        std::exit(1);
    }
    return result;
}

}  // namespace bench_edge
