// The parser and the resolver of http/url.hpp.
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/uri.hpp>
#include <coppice/http/url.hpp>
#include <coppice/io/endpoint.hpp>

#include <algorithm>
#include <optional>
#include <system_error>

namespace coppice::http {

using namespace internal;

namespace {

// Returns true if `text` has only bytes of the classes, and escapes of two hexadecimal digits.
bool made_of(std::string_view text, int classes, std::string_view others = {}) noexcept {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (is(text[i], classes) || others.find(text[i]) != others.npos) continue;
        if (text[i] != '%' || text.size() - i < 3) return false;
        if (!is(text[i + 1], hex_byte) || !is(text[i + 2], hex_byte)) return false;
        i += 2;
    }
    return true;
}

bool is_letter(char c) noexcept {
    return lower(c) >= 'a' && lower(c) <= 'z';
}

// Returns where the scheme of a URI or a relative reference ends; npos if it has none.
std::size_t end_of_scheme(std::string_view text) noexcept {
    if (text.empty() || !is_letter(text.front())) return text.npos;
    for (std::size_t i = 1; i != text.size(); ++i) {
        const char c = text[i];
        if (c == ':') return i;
        if (!is_letter(c) && !is(c, digit_byte) && c != '+' && c != '-' && c != '.') break;
    }
    return text.npos;
}

// Returns true for a host that ends like a number. Resolvers read such names as addresses, each in
// its own way: 127.1, 0x7f.1.
bool ends_in_a_number(std::string_view host) noexcept {
    if (host.ends_with('.')) host.remove_suffix(1);
    std::string_view last = host.substr(host.rfind('.') + 1);  // npos + 1: all of it
    if (last.starts_with("0x")) {
        last.remove_prefix(2);
        return std::ranges::all_of(last, [](char c) { return is(c, hex_byte); });
    }
    return !last.empty() && std::ranges::all_of(last, [](char c) { return is(c, digit_byte); });
}

// Returns what is wrong with a host; "" if a request can be sent to it.
const char* fault_of_host(std::string_view host) noexcept {
    if (host.empty()) return "it has no host";
    if (host.front() == '[') {
        const bool good = host.back() == ']' && host.size() > 2 && host[1] != '[';
        const auto address =
            io::endpoint::parse(good ? host.substr(1, host.size() - 2) : "", std::uint16_t{1});
        return address && address.value().is_v6() ? "" : "what is in brackets is no IPv6 address";
    }
    if (!std::ranges::all_of(host, [](char c) { return is(c, host_byte); })) {
        return "the host has a byte that no name has";
    }
    if (ends_in_a_number(host) && !io::endpoint::parse(host, std::uint16_t{1})) {
        return "the host is neither an IPv4 address nor a name";
    }
    return "";
}

// The parts of a reference (RFC 3986 appendix B), without their delimiters.
struct reference_parts {
    explicit reference_parts(std::string_view text) noexcept {
        if (const std::size_t end = end_of_scheme(text); end != text.npos) {
            scheme = text.substr(0, end);
            text.remove_prefix(end + 1);
        }
        if (const std::size_t hash = text.find('#'); hash != text.npos) {
            fragment = text.substr(hash + 1);
            text = text.substr(0, hash);
        }
        if (const std::size_t mark = text.find('?'); mark != text.npos) {
            query = text.substr(mark + 1);
            text = text.substr(0, mark);
        }
        if (text.starts_with("//")) {
            text.remove_prefix(2);
            const std::size_t end = std::min(text.find('/'), text.size());
            authority = text.substr(0, end);
            text.remove_prefix(end);
        }
        path = text;
    }
    std::optional<std::string_view> scheme, authority, query, fragment;
    std::string_view path;
};

// Removes dot segments (RFC 3986 section 5.2.4) from a path that begins with '/' or is empty.
std::string without_dot_segments(std::string_view path) {
    std::string out;
    out.reserve(path.size() + 1);
    while (!path.empty()) {
        const std::size_t end = std::min(path.find('/', 1), path.size());
        const std::string_view segment = path.substr(1, end - 1);
        path.remove_prefix(end);
        const bool up = segment == "..";
        if (up) out.resize(out.empty() ? 0 : out.rfind('/'));
        if (!up && segment != ".") {
            out.append("/").append(segment);
        } else if (path.empty()) {
            out.append("/");
        }
    }
    return out;
}

}  // namespace

result<url> url::parse(std::string_view text) {
    url parsed;
    if (*parsed.read(text) != '\0') return std::errc::invalid_argument;
    return parsed;
}

url::url(std::string_view text) {
    if (const char* const fault = read(text); *fault != '\0') {
        throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                                std::string("http::url: ") + fault);
    }
}

std::string_view url::host() const noexcept {
    const bool brackets = part(host_begin_, host_end_).starts_with('[');
    return brackets ? part(host_begin_ + 1, host_end_ - 1) : part(host_begin_, host_end_);
}

std::string_view url::query() const noexcept {
    return path_end_ == query_end_ ? std::string_view() : part(path_end_ + 1, query_end_);
}

std::string_view url::fragment() const noexcept {
    return query_end_ == text_.size() ? std::string_view() : part(query_end_ + 1, text_.size());
}

// Parses the text into this URL. Returns what is wrong with it; "" if nothing is.
const char* url::read(std::string_view text) {
    if (text.size() > bytes_max) return "it is longer than 65,535 bytes";
    if (text.empty() || end_of_scheme(text) == text.npos) {
        return "it has no scheme; write http://host/path";
    }
    const reference_parts parts(text);
    text_.reserve(text.size() + 1);
    for (const char c : *parts.scheme) text_.push_back(lower(c));
    if (text_ != "http" && text_ != "https") return "its scheme is neither http nor https";
    if (!parts.authority) return "its scheme is not followed by // and a host";
    scheme_end_ = static_cast<std::uint32_t>(text_.size());
    port_ = text_ == "http" ? 80 : 443;
    text_.append("://");
    if (const char* const fault = read_authority(*parts.authority); *fault != '\0') return fault;

    const auto size = [&] { return static_cast<std::uint32_t>(text_.size()); };
    path_begin_ = size();
    if (!made_of(parts.path, path_byte)) return "the path has a byte that must be escaped";
    text_.append(parts.path.empty() ? std::string_view("/") : parts.path);
    path_end_ = size();
    if (parts.query) {
        if (!made_of(*parts.query, query_byte)) return "the query has a byte that must be escaped";
        text_.append("?").append(*parts.query);
    }
    query_end_ = size();
    if (parts.fragment) {
        if (!made_of(*parts.fragment, query_byte)) {
            return "the fragment has a byte that must be escaped";
        }
        text_.append("#").append(*parts.fragment);
    }
    return "";
}

const char* url::read_authority(std::string_view text) {
    if (text.find('@') != text.npos) {
        return "it has user information before an '@'; send an Authorization field instead";
    }
    const std::size_t bracket = text.starts_with('[') ? text.find(']') : 0;
    const std::size_t colon = bracket == text.npos ? text.npos : text.find(':', bracket);
    const std::string_view host = text.substr(0, colon);
    host_begin_ = static_cast<std::uint32_t>(text_.size());
    for (const char c : host) text_.push_back(lower(c));
    host_end_ = static_cast<std::uint32_t>(text_.size());
    if (const char* const fault = fault_of_host(part(host_begin_, host_end_)); *fault != '\0') {
        return fault;
    }
    if (colon == text.npos || colon + 1 == text.size()) return "";
    const std::string_view digits = text.substr(colon + 1);
    const auto number = parse_integer<std::uint16_t>(digits);
    if (!number || *number == 0 || digits.size() > 5) return "its port is not from 1 to 65535";
    if (*number != port_) text_.append(":").append(std::to_string(*number));
    port_ = *number;
    return "";
}

result<url> url::resolve(std::string_view reference) const {
    if (reference.size() > bytes_max) return std::errc::invalid_argument;
    const reference_parts r(reference);
    // "http:/x" names no host. Neither does "http:/.//host": without its dots, its path would look
    // like an authority (section 5.3).
    if (r.scheme && !r.authority) return std::errc::invalid_argument;
    std::string whole(r.scheme ? *r.scheme : scheme());
    whole.append(":");
    const bool own_authority = !r.scheme && !r.authority;
    if (r.authority) whole.append("//").append(*r.authority);
    if (own_authority) whole.append("//").append(authority());
    std::optional<std::string_view> question = r.query;
    if (!own_authority || r.path.starts_with('/')) {
        const bool rooted = r.path.starts_with('/');
        whole += rooted ? without_dot_segments(r.path) : std::string(r.path);
    } else if (r.path.empty()) {
        whole += path();
        if (!question && path_end_ != query_end_) question = query();
    } else {
        std::string merged(path().substr(0, path().rfind('/') + 1));
        whole += without_dot_segments(merged.append(r.path));
    }
    if (question) whole.append("?").append(*question);
    if (r.fragment) whole.append("#").append(*r.fragment);
    return parse(whole);
}

}  // namespace coppice::http
