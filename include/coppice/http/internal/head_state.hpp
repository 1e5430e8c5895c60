// head_state: where in the grammar of a request head the bytes so far ended.
#pragma once

#include <coppice/base/internal/namespaces.hpp>

#include <cstddef>

namespace coppice::http::internal {

// The state that a head_parser keeps between calls: where in the grammar the bytes so far ended.
struct head_state {
    enum class phase : unsigned char { start, verb, target, version, line, name, value };
    phase at = phase::start;
    bool host_seen = false;
    bool coding_seen = false;     // any Transfer-Encoding
    bool coding_unknown = false;  // one other than chunked
    bool close_seen = false;
    bool keep_alive_seen = false;
    std::size_t token = 0;    // offset of the token that is being read
    std::size_t scanned = 0;  // offset up to which the token's bytes are known to be good
    std::size_t block = 0;    // offset of the first field line
    std::size_t query = 0;    // offset of the target's first '?', or 0
};

}  // namespace coppice::http::internal
