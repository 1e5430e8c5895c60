// See json.hpp.
#include "json.hpp"

#include <charconv>
#include <cstdint>

namespace notes {

namespace {

void append_utf8(std::string& out, std::uint32_t c) {
    if (c < 0x80) {
        out.push_back(static_cast<char>(c));
        return;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static constexpr unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    out.push_back(static_cast<char>(leads[more] | c >> (6 * more)));
    for (int i = more; i-- != 0;) out.push_back(static_cast<char>(0x80 | (c >> (6 * i) & 0x3f)));
}

// Reads from the front of a text. Every function returns nothing, or false, if the text does not
// match.
class reader {
public:
    explicit reader(std::string_view text) noexcept : left_(text) {}

    bool take(char c) noexcept {
        skip_space();
        if (left_.empty() || left_.front() != c) return false;
        left_.remove_prefix(1);
        return true;
    }
    bool at_end() noexcept {
        skip_space();
        return left_.empty();
    }
    std::optional<std::string> string() {
        if (!take('"')) return std::nullopt;
        std::string text;
        while (!left_.empty()) {
            const char c = next();
            if (c == '"') return text;
            if (static_cast<unsigned char>(c) < 0x20) return std::nullopt;
            if (c != '\\') {
                text.push_back(c);
            } else if (!escape(text)) {
                return std::nullopt;
            }
        }
        return std::nullopt;
    }

private:
    char next() noexcept {
        const char c = left_.front();
        left_.remove_prefix(1);
        return c;
    }
    void skip_space() noexcept {
        left_.remove_prefix(std::min(left_.find_first_not_of(" \t\r\n"), left_.size()));
    }
    bool escape(std::string& out) {
        static constexpr std::string_view names = "\"\\/bfnrt";
        static constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
        if (left_.empty()) return false;
        const char c = next();
        if (const std::size_t i = names.find(c); i != names.npos) {
            out.push_back(meant[i]);
            return true;
        }
        if (c != 'u') return false;
        std::optional<std::uint32_t> code = hex();
        if (!code) return false;
        if (*code >= 0xd800 && *code < 0xdc00) {  // the first half of a surrogate pair
            if (!left_.starts_with("\\u")) return false;
            left_.remove_prefix(2);
            const std::optional<std::uint32_t> low = hex();
            if (!low || *low < 0xdc00 || *low > 0xdfff) return false;
            code = 0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00);
        } else if (*code >= 0xdc00 && *code <= 0xdfff) {
            return false;
        }
        append_utf8(out, *code);
        return true;
    }
    std::optional<std::uint32_t> hex() noexcept {
        std::uint32_t value = 0;
        const char* const end = left_.data() + std::min<std::size_t>(left_.size(), 4);
        if (std::from_chars(left_.data(), end, value, 16).ptr != left_.data() + 4) {
            return std::nullopt;
        }
        left_.remove_prefix(4);
        return value;
    }

    std::string_view left_;
};

}  // namespace

void append_string(std::string& out, std::string_view text) {
    static constexpr char digits[] = "0123456789abcdef";
    out.push_back('"');
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out.push_back('\\');
            out.push_back(c);
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out.append("\\u00").append({digits[c >> 4], digits[c & 15]});
        } else {
            out.push_back(c);
        }
    }
    out.push_back('"');
}

std::optional<std::string> string_member(std::string_view json, std::string_view name) {
    reader r(json);
    if (!r.take('{') || r.string() != name || !r.take(':')) return std::nullopt;
    std::optional<std::string> value = r.string();
    if (!value || !r.take('}') || !r.at_end() || !is_text(*value)) return std::nullopt;
    return value;
}

bool is_text(std::string_view text) noexcept {
    for (std::size_t i = 0; i != text.size();) {
        const auto lead = static_cast<unsigned char>(text[i]);
        const std::size_t more = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
        if (lead == 0 || (lead >= 0x80 && lead < 0xc2) || lead > 0xf4) return false;
        if (text.size() - i <= more) return false;
        std::uint32_t c = more == 0 ? lead : lead & (0x3fu >> more);
        for (std::size_t j = 1; j <= more; ++j) {
            const auto byte = static_cast<unsigned char>(text[i + j]);
            if ((byte & 0xc0) != 0x80) return false;
            c = c << 6 | (byte & 0x3fu);
        }
        const bool overlong = (more == 2 && c < 0x800) || (more == 3 && c < 0x10000);
        if (overlong || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff) return false;
        i += more + 1;
    }
    return true;
}

}  // namespace notes
