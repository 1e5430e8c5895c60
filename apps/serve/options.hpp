// The options on the command line of coppice-serve.
#pragma once

#include <coppice/http/server.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace serve {

struct options {
    // For the server: the flags write its limits and timeouts here.
    coppice::http::server_options server;
    // 0: the server's default; likewise for the next member
    std::size_t connections_per_address_max = 0;
    std::size_t buffered_bytes_max = 0;
    std::string address = "127.0.0.1";
    std::uint16_t port = 8080;
    // 0: one for `single`, otherwise as many as the machine has processors
    std::size_t threads = 0;
    // PEM files: certificates, and the key of each, in the same order; none: no TLS.
    std::vector<std::string> tls_certificates, tls_keys;
    std::uint16_t tls_port = 8443;
    bool tls_only = false;                    // no port in the clear
    std::size_t handshake_threads = 0;        // 0: each loop computes its own
    bool check = false;                       // ends before it listens
    bool healthcheck = false;                 // asks the server that runs with these options
    std::vector<std::string> forwarded_from;  // blocks of proxies that write fields
    std::vector<std::string> proxies;         // blocks of addresses that use the PROXY protocol
    std::string root;                         // "": no files are served
    std::string access_log;                   // "": none
    std::vector<std::string> cors;   // origins whose scripts may use the server; none: no CORS
    bool compress = false;           // compresses answers for clients that accept it
    bool workloads = true;           // serves /cpu, /io, /io-async, and /echo
    std::vector<std::string> hosts;  // that are served; none: all
    std::uint64_t rate = 0;          // requests per second of one address; 0: no limit
    std::uint64_t rate_burst = 0;    // 0: twice the rate
    std::vector<std::string> rate_exempt;    // blocks of addresses without that limit
    std::chrono::nanoseconds shed_after{0};  // 0: no limit
    std::uint64_t workload_max = 0;  // how many of these at once; beyond this, 503; 0: no limit
    // Where /metrics, /livez, and /readyz are served instead; none: where all else is.
    std::optional<std::uint16_t> admin_port;
    std::string admin_address = "127.0.0.1";
    // From the signal to the drain; meanwhile only /readyz says that it is coming.
    std::chrono::nanoseconds drain_delay{0};
    std::chrono::nanoseconds drain = std::chrono::seconds(30);  // afterwards the rest is cut off
};

// Returns the options, or the status to exit with: 0 after --help and --version, 2 after a message
// on stderr.
std::variant<options, int> parse(int argc, char** argv);

// Reads "500ms", "10s", "2m", "1h": a whole number and its unit. Returns nothing if it is not one,
// or is longer than a duration can express.
std::optional<std::chrono::nanoseconds> read_duration(std::string_view text);

// Reads "4096", "64k", "8M", "1G": a whole number of bytes, or of 1024, 1024^2, or 1024^3 bytes.
// Returns nothing if it is not one, or is more than 2^64 - 1.
std::optional<std::uint64_t> read_size(std::string_view text);

}  // namespace serve
