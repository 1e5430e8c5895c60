// The command line of coppice-chat.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

namespace chat {

struct options {
    std::string address = "127.0.0.1";
    std::uint16_t port = 8082;
    std::size_t threads = 0;               // event loops; 0: as many as the machine has processors
    std::string tls_certificate, tls_key;  // PEM files; "": no TLS
    std::size_t rooms_max = 1000;
    std::size_t visitors_max = 200;  // of one room
    std::size_t backlog = 100;       // messages that a room keeps for slow readers
    std::size_t message_bytes_max = 4 * 1024;
    std::size_t messages_per_second = 5;              // of one visitor; twice as many at once
    std::chrono::milliseconds ping_interval{30'000};  // of silence, until the server asks
    std::chrono::milliseconds drain{10'000};  // from the signal; afterwards the rest is cut off
};

// Returns the options, or the status to exit with: 0 after --help and --version, 2 after a message
// on stderr.
std::variant<options, int> parse(int argc, char** argv);

}  // namespace chat
