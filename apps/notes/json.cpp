// See json.hpp.
#include "json.hpp"

#include <nlohmann/json.hpp>

namespace notes {

void append_string(std::string& out, std::string_view text) {
    using nlohmann::json;
    out += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<std::string> string_member(std::string_view json, std::string_view name) {
    const nlohmann::json parsed = nlohmann::json::parse(json, nullptr, false);
    if (!parsed.is_object() || parsed.size() != 1) return std::nullopt;
    const auto member = parsed.find(name);
    if (member == parsed.end() || !member->is_string()) return std::nullopt;
    std::string text = member->get<std::string>();
    if (text.find('\0') != text.npos) return std::nullopt;
    return text;
}

}  // namespace notes
