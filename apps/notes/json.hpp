// As much JSON as notes need: strings out, and an object with one string in.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace notes {

// Appends `text`, which is UTF-8, as a JSON string with its quotes (RFC 8259 section 7).
void append_string(std::string& out, std::string_view text);

// The string member `name` of an object that has this member alone. Nothing: the text is no JSON,
// no such object, or names a character that is none. Escapes are resolved; UTF-8 is checked.
std::optional<std::string> string_member(std::string_view json, std::string_view name);

// Whether the text is UTF-8 (RFC 3629) without a NUL, which databases do not take.
bool is_text(std::string_view text) noexcept;

}  // namespace notes
