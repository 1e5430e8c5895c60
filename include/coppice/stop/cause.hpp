// stop_cause: why a stop was requested; a small value that travels from a source to its tokens.
#pragma once

#include <coppice/base/version.hpp>

namespace coppice {

// A code, whose meaning the requester defines, and a text of static lifetime. A linked source
// passes on the cause of its parent. The code of a deadline is ETIMEDOUT.
struct stop_cause {
    int code = 0;           // defined by the requester; 0: none
    const char* text = "";  // for people to read; static lifetime
};

}  // namespace coppice
