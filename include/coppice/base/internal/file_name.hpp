// whole_name: a file name for system calls, which read it up to a NUL; used by io, http, and trace.
#pragma once

#include <coppice/base/version.hpp>

#include <string>
#include <system_error>

namespace coppice::internal {

// Returns the name as a C string. Errors: std::system_error with invalid_argument if the name
// contains a NUL, which would hide the rest of it from the system. Lifetime: that of the string.
inline const char* whole_name(const std::string& name) {
    if (name.find('\0') != name.npos) {
        throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                                std::string(name.c_str()) + ": a NUL in the name of a file");
    }
    return name.c_str();
}

}  // namespace coppice::internal
