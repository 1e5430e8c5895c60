// json_string: a text between quotes, as JSON writes it; for traces and for refusals in JSON.
#pragma once

#include <coppice/base/version.hpp>

#include <string>
#include <string_view>

namespace coppice::internal {

// Returns the text as a JSON string, with its quotes (RFC 8259 section 7). Bytes that are not UTF-8
// become U+FFFD. DEL, the controls U+0080 to U+009F, and the ends of lines U+2028 and U+2029 are
// escaped too: programs that read lines take some of them for an end. Threads: any. Errors:
// std::bad_alloc. Cost: allocates the result.
std::string json_string(std::string_view text);
// Appends that to `out`. Cost: no allocation if `out` has the capacity.
void append_json_string(std::string_view text, std::string& out);

}  // namespace coppice::internal
