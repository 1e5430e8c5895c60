// stop_cause: why a stop was requested; a small value that travels from a source to its tokens.
#pragma once

#include <coppice/base/version.hpp>

namespace coppice {

// A code, whose meaning the requester defines, and a text of static lifetime. Linked sources pass
// the cause of the parent on; a deadline's is ETIMEDOUT.
struct stop_cause {
    int code = 0;           // what the requester says; 0: nothing
    const char* text = "";  // the same for people; of static lifetime
};

}  // namespace coppice
