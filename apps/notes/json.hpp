// As much JSON as notes need: writes strings, and reads an object with one string.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace notes {

// Appends `text`, which is UTF-8, as a JSON string with its quotes (RFC 8259 section 7).
void append_string(std::string& out, std::string_view text);

// Returns the string member `name` of an object that has only this member. Returns nothing if the
// text is not JSON, is not such an object, or names an invalid character. Resolves escapes and
// checks UTF-8.
std::optional<std::string> string_member(std::string_view json, std::string_view name);

// Returns true if the text is UTF-8 (RFC 3629) without a NUL, which databases reject.
bool is_text(std::string_view text) noexcept;

}  // namespace notes
