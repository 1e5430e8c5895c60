// Cookies: those of a request as views, and checked Set-Cookie fields (RFC 6265bis).
#pragma once
// A client may send anything as a cookie. A value that must be trusted needs a signature, or must
// be a random name in a table of the server's.

#include <coppice/http/message.hpp>

#include <chrono>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace coppice::http {

// One cookie as sent. The name is a token. The value keeps its quotes, and has any byte that a
// field may have except ';'.
struct cookie_pair {
    std::string_view name;
    std::string_view value;
};

// The cookies of a request, from all its Cookie fields, in the order in which they were sent. Skips
// text without '=', and text whose name is not a token. Lifetime: views into the request's head.
class cookie_range {
public:
    class iterator {
    public:
        using value_type = cookie_pair;
        using difference_type = std::ptrdiff_t;
        using iterator_concept = std::forward_iterator_tag;
        using iterator_category = std::input_iterator_tag;
        using reference = cookie_pair;
        using pointer = const cookie_pair*;

        iterator() noexcept = default;
        reference operator*() const noexcept { return current_; }
        pointer operator->() const noexcept { return &current_; }
        iterator& operator++() noexcept {
            advance();
            return *this;
        }
        iterator operator++(int) noexcept {
            iterator before = *this;
            advance();
            return before;
        }
        // For iterators of the same range.
        friend bool operator==(const iterator& a, const iterator& b) noexcept {
            return a.current_.name.data() == b.current_.name.data();
        }

    private:
        friend class cookie_range;
        explicit iterator(std::span<const field> fields) noexcept : fields_(fields) { advance(); }
        void advance() noexcept;

        std::span<const field> fields_;  // not looked at yet
        std::string_view rest_;          // of the current field
        cookie_pair current_;            // at the end: a name without data
    };

    explicit cookie_range(std::span<const field> fields) noexcept : fields_(fields) {}
    iterator begin() const noexcept { return iterator(fields_); }
    iterator end() const noexcept { return {}; }

private:
    std::span<const field> fields_;
};

// Returns all cookies of a request. Cost: no allocation; a step is O(bytes of the cookie).
inline cookie_range cookies(const request& r) noexcept {
    return cookie_range(r.head().fields());
}

// Returns the value of the first cookie with that name, compared case-sensitively. A browser sends
// the cookie with the longest path first. Cost: no allocation.
std::optional<std::string_view> cookie(const request& r, std::string_view name) noexcept;

// Which requests from other sites a browser adds the cookie to.
enum class same_site_rule : unsigned char {
    strict,  // none
    lax,     // only when following a link
    none,    // all; requires `secure`
    unset,   // leaves the attribute out; the browser decides
};

// A cookie for a browser to keep. The defaults hide it from scripts and from forms of other sites.
// A service behind a proxy with TLS sets `secure` too.
struct set_cookie {
    std::string name;  // a token
    // without control bytes, spaces, quotes, commas, semicolons, backslashes
    std::string value = {};
    std::string path = "/";   // "": the directory of the request's path
    std::string domain = {};  // "": this host alone; otherwise this domain and its subdomains
    // With neither of the two, the cookie lasts until the browser ends. Browsers keep no cookie for
    // more than 400 days.
    std::optional<std::chrono::seconds> max_age = {};  // 0 or less: forget it; overrides `expires`
    std::optional<std::chrono::sys_seconds> expires = {};  // years 1970 to 9999
    bool secure = false;    // sent only over TLS, or to the browser's own machine
    bool http_only = true;  // hidden from scripts
    same_site_rule same_site = same_site_rule::lax;
    // a separate cookie for each site that embeds this one; requires `secure`
    bool partitioned = false;

    // Returns the value of the Set-Cookie field. Errors: std::invalid_argument for a name that is
    // not a token; for a byte that its place does not allow; for a path without '/'; for a name and
    // value of more than 4,096 bytes together; for another attribute of more than 1,024 bytes; and
    // for a cookie that browsers refuse: `__Secure-` without `secure`; `__Host-` without `secure`,
    // with a domain, or with a path other than "/"; same_site_rule::none or `partitioned` without
    // `secure`.
    std::string field_value() const;
};

// Adds a Set-Cookie field. Errors: as set_cookie::field_value(), and no change.
response& add_cookie(response& answer, const set_cookie& c);
response&& add_cookie(response&& answer, const set_cookie& c);

// Makes a browser forget the cookie. `c` has the name, the path, and the domain that it was set
// with, and `secure` where its name requires it. The value and the times of `c` do not matter.
// Errors: as add_cookie().
response& expire_cookie(response& answer, set_cookie c);
response&& expire_cookie(response&& answer, set_cookie c);

}  // namespace coppice::http
