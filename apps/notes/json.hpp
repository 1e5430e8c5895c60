// The JSON of notes, by nlohmann-json: writes strings, and reads an object with one string.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace notes {

// Appends `text`, which is UTF-8, as a JSON string with its quotes (RFC 8259 section 7).
void append_string(std::string& out, std::string_view text);

// Returns the string member `name` of an object that has only this member. Returns nothing if the
// text is not JSON in UTF-8, is not such an object, or has a NUL, which databases reject.
std::optional<std::string> string_member(std::string_view json, std::string_view name);

}  // namespace notes
