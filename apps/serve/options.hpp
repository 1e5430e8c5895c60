// What the command line of coppice-serve says.
#pragma once

#include <coppice/http/server.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <string>
#include <variant>

namespace serve {

struct options {
    std::string address = "127.0.0.1";
    std::uint16_t port = 8080;
    std::size_t threads = 0;  // 0: one for `single`, as many as the machine has otherwise
    coppice::http::model model = coppice::http::model::multi;
    coppice::io::backend ring = coppice::io::backend::automatic;
    std::string root;        // "": no files are served
    std::string access_log;  // "": none
};

// The options, or the status to exit with: 0 after --help and --version, 2 after a message on
// stderr.
std::variant<options, int> parse(int argc, char** argv);

}  // namespace serve
