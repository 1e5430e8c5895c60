// The filter that turns error texts into JSON.
#include <coppice/http/filters.hpp>

#include <string>
#include <string_view>

namespace coppice::http {

namespace {

// Returns how many bytes at the beginning of `text` are one UTF-8 character; 0 if they are not one
// (Unicode 15, table 3-7).
std::size_t character_bytes(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) -> unsigned {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4 || !continues(1)) return 0;
    if (first < 0xe0) return 2;
    if (!continues(2)) return 0;
    if (first < 0xf0) {
        const bool is_overlong = first == 0xe0 && byte(1) < 0xa0;
        const bool is_surrogate = first == 0xed && byte(1) > 0x9f;
        return is_overlong || is_surrogate ? 0 : 3;
    }
    const bool is_overlong = first == 0xf0 && byte(1) < 0x90;
    const bool is_beyond = first == 0xf4 && byte(1) > 0x8f;
    return is_overlong || is_beyond || !continues(3) ? 0 : 4;
}

// Returns the text as a JSON string (RFC 8259 section 7).
std::string quoted(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out = "\"";
    while (!text.empty()) {
        const std::size_t bytes = character_bytes(text);
        const auto first = static_cast<unsigned char>(text.front());
        if (bytes == 0) {
            out += "\\ufffd";
        } else if (first < 0x20) {
            out.append("\\u00").append(1, digits[first / 16]).append(1, digits[first % 16]);
        } else {
            if (first == '"' || first == '\\') out += '\\';
            out.append(text.substr(0, bytes));
        }
        text.remove_prefix(bytes == 0 ? 1 : bytes);
    }
    return out += '"';
}

class json_errors_filter final : public filter {
public:
    void after(const request&, response& answer) const override {
        if (answer.status() < 400 || answer.source() != nullptr) return;
        if (!answer.content_type().empty() && !answer.content_type().starts_with("text/plain")) {
            return;
        }
        std::string text = "{\"error\":";
        text += quoted(answer.body().empty() ? reason_phrase(answer.status()) : answer.body());
        answer.body(text += '}').content_type("application/json");
    }
};

}  // namespace

std::shared_ptr<const filter> json_errors() {
    return std::make_shared<json_errors_filter>();
}

}  // namespace coppice::http
