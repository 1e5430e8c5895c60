// url: an absolute URL of http or https, taken apart strictly; used by the client.
#pragma once
// Source: RFC 3986, narrowed to what can be asked over HTTP (RFC 9110 section 4.2): a scheme, a
// host and a path, no user information. A URL that was parsed has no byte that could end a request
// line or a field: no control, no space, nothing that is not ASCII. Percent escapes stay as they
// were written. The query may hold what browsers leave as it is: [ ] { } | \ ^ `.
//
// What is equal in every client is brought to one form: scheme and host in lower case, no port that
// is the scheme's own, "/" for an empty path. Dot segments are removed by resolve() alone.

#include <coppice/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace coppice::http {

// A value; threads do not matter to it. Views that it gives live as long as it is not changed.
class url {
public:
    static constexpr std::size_t bytes_max = 65'535;  // of its text

    // Parses an absolute URL. Errors: std::errc::invalid_argument for anything else, and for a
    // scheme other than http and https. Cost: one allocation for a text that is not short.
    static internal::result<url> parse(std::string_view text);
    // The same. Errors: std::system_error with std::errc::invalid_argument; it says what is wrong.
    explicit url(std::string_view text);

    // "http" or "https".
    std::string_view scheme() const noexcept { return part(0, scheme_end_); }
    // A name, an IPv4 address, or an IPv6 address without its brackets.
    std::string_view host() const noexcept;
    // 1 to 65535; the scheme's own if the text has none: 80 or 443.
    std::uint16_t port() const noexcept { return port_; }
    // Host and port as the Host field has them: brackets around IPv6; no port that is the scheme's.
    std::string_view authority() const noexcept { return part(host_begin_, path_begin_); }
    std::string_view path() const noexcept { return part(path_begin_, path_end_); }
    // What is behind the '?'; "" also if there is none.
    std::string_view query() const noexcept;
    // What is behind the '#'; it is never sent. "" also if there is none.
    std::string_view fragment() const noexcept;
    // Path and query: the target of a request.
    std::string_view target() const noexcept { return part(path_begin_, query_end_); }
    const std::string& to_string() const noexcept { return text_; }

    // The URL that a reference means where this is the base (RFC 3986 section 5.2, strict): a
    // Location field, a link. Dot segments are removed. Errors: as parse().
    internal::result<url> resolve(std::string_view reference) const;

    // Whether both have the same scheme, host and port: who may see a credential of one may see one
    // of the other.
    bool same_origin(const url& other) const noexcept {
        return part(0, path_begin_) == other.part(0, other.path_begin_);
    }

    friend bool operator==(const url& a, const url& b) noexcept { return a.text_ == b.text_; }

private:
    url() noexcept = default;
    const char* read(std::string_view text);
    const char* read_authority(std::string_view text);
    // "" of one that was moved from.
    std::string_view part(std::size_t begin, std::size_t end) const noexcept {
        if (text_.empty()) return {};
        return std::string_view(text_).substr(begin, end - begin);
    }

    // scheme "://" host [":" port] path ["?" query] ["#" fragment]
    std::string text_;
    std::uint32_t scheme_end_ = 0;
    std::uint32_t host_begin_ = 0;
    std::uint32_t host_end_ = 0;  // behind the brackets, if it has them
    std::uint32_t path_begin_ = 0;
    std::uint32_t path_end_ = 0;
    std::uint32_t query_end_ = 0;
    std::uint16_t port_ = 0;
};

}  // namespace coppice::http
