// A small text, with planted faults or without, on which a check of the style law is tried.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace tidy {

struct text_at {
    const char* path;
    std::string text;
};

struct example {
    const char* check;
    const char* about;
    std::vector<text_at> files;
    std::vector<std::size_t> lines;  // of the findings, in any order; none if this is lawful
};

inline std::ostream& operator<<(std::ostream& out, const example& e) {
    return out << e.check << ": " << e.about;
}

inline constexpr const char* library = "include/coppice/pool/x.hpp";
inline constexpr const char* source = "src/pool/x.cpp";

inline std::string lines_of(std::size_t count, const std::string& line) {
    std::string text;
    for (std::size_t i = 0; i != count; ++i) text += line + "\n";
    return text;
}

}  // namespace tidy
