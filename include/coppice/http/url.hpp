// url: an absolute URL of http or https, strictly parsed into its parts; used by the client.
#pragma once
// Source: RFC 3986, narrowed to what can be requested over HTTP (RFC 9110 section 4.2): a scheme, a
// host, and a path, without user information. A parsed URL has no byte that could end a request
// line or a field: no control byte, no space, nothing outside ASCII. Percent escapes stay as they
// were written. The query may hold bytes that browsers leave unescaped: [ ] { } | \ ^ `.
//
// Spellings that every client treats as equal are brought to one form: scheme and host in lower
// case, no port that is the scheme's default, "/" for an empty path. Only resolve() removes dot
// segments.

#include <coppice/base/internal/result.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace coppice::http {

// A parsed URL. A value type. Lifetime: its views are valid until it is changed.
class url {
public:
    static constexpr std::size_t bytes_max = 65'535;  // of the URL's text

    // Parses an absolute URL. Errors: std::errc::invalid_argument for anything else, and for a
    // scheme other than http and https. Cost: one allocation, unless the text is short.
    static internal::result<url> parse(std::string_view text);
    // Parses an absolute URL. Errors: std::system_error with std::errc::invalid_argument; its
    // message says what is wrong.
    explicit url(std::string_view text);

    // Returns "http" or "https".
    std::string_view scheme() const noexcept { return part(0, scheme_end_); }
    // Returns a name, an IPv4 address, or an IPv6 address without its brackets.
    std::string_view host() const noexcept;
    // Returns 1 to 65535; if the text has no port, the scheme's default: 80 or 443.
    std::uint16_t port() const noexcept { return port_; }
    // Returns host and port in the form of the Host field: brackets around IPv6, and no port that
    // is the scheme's default.
    std::string_view authority() const noexcept { return part(host_begin_, path_begin_); }
    // Returns the path, which begins with '/'.
    std::string_view path() const noexcept { return part(path_begin_, path_end_); }
    // Returns what follows the '?'; "" also if there is none.
    std::string_view query() const noexcept;
    // Returns what follows the '#', which is never sent; "" also if there is none.
    std::string_view fragment() const noexcept;
    // Returns path and query: the target of a request.
    std::string_view target() const noexcept { return part(path_begin_, query_end_); }
    // Returns the text of the whole URL.
    const std::string& to_string() const noexcept { return text_; }

    // Returns the URL that a reference (a Location field, a link) means relative to this one (RFC
    // 3986 section 5.2, strict). Removes dot segments. Errors: as parse().
    internal::result<url> resolve(std::string_view reference) const;

    // Returns true if both have the same scheme, host, and port: a server that may see a credential
    // of one may see those of the other.
    bool same_origin(const url& other) const noexcept {
        return part(0, path_begin_) == other.part(0, other.path_begin_);
    }

    friend bool operator==(const url& a, const url& b) noexcept { return a.text_ == b.text_; }

private:
    url() noexcept = default;
    const char* read(std::string_view text);
    const char* read_authority(std::string_view text);
    // Returns "" if this was moved from.
    std::string_view part(std::size_t begin, std::size_t end) const noexcept {
        if (text_.empty()) return {};
        return std::string_view(text_).substr(begin, end - begin);
    }

    // scheme "://" host [":" port] path ["?" query] ["#" fragment]
    std::string text_;
    std::uint32_t scheme_end_ = 0;
    std::uint32_t host_begin_ = 0;
    std::uint32_t host_end_ = 0;  // after the brackets, if it has them
    std::uint32_t path_begin_ = 0;
    std::uint32_t path_end_ = 0;
    std::uint32_t query_end_ = 0;
    std::uint16_t port_ = 0;
};

}  // namespace coppice::http
