// Cookies: those of a request as views, and Set-Cookie fields that are checked (RFC 6265bis).
#pragma once
// A client may send anything as a cookie: a value that is more than a wish of the user needs a
// random name in a table of the server's, or a signature.

#include <coppice/http/message.hpp>

#include <chrono>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace coppice::http {

// One cookie as sent: the name is a token; the value has any byte that a field has but ';', and
// keeps its quotes.
struct cookie_pair {
    std::string_view name;
    std::string_view value;
};

// The cookies of a request, in the order in which they were sent, from all its Cookie fields. What
// has no '=', or a name that is no token, is passed over. Lifetime: views into the request's head.
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
        // Of iterators of the same range.
        friend bool operator==(const iterator& a, const iterator& b) noexcept {
            return a.current_.name.data() == b.current_.name.data();
        }

    private:
        friend class cookie_range;
        explicit iterator(std::span<const field> fields) noexcept : fields_(fields) { advance(); }
        void advance() noexcept;

        std::span<const field> fields_;  // not looked at yet
        std::string_view rest_;          // of the present field
        cookie_pair current_;            // the end: a name without data
    };

    explicit cookie_range(std::span<const field> fields) noexcept : fields_(fields) {}
    iterator begin() const noexcept { return iterator(fields_); }
    iterator end() const noexcept { return {}; }

private:
    std::span<const field> fields_;
};

// All cookies of a request. Cost: no allocation; a step is O(bytes of the cookie).
inline cookie_range cookies(const request& r) noexcept {
    return cookie_range(r.head().fields());
}

// The value of the first cookie with that name, which is compared with its case. A browser sends
// the one with the longest path first. Cost: no allocation.
std::optional<std::string_view> cookie(const request& r, std::string_view name) noexcept;

// To which requests from other sites a browser adds the cookie.
enum class same_site_rule : unsigned char {
    strict,  // none
    lax,     // following a link, and no others
    none,    // all; demands `secure`
    unset,   // the attribute is left out, and the browser decides
};

// A cookie for a browser to keep. The defaults keep it from scripts and from the forms of other
// sites; a service behind a proxy with TLS sets `secure` too.
struct set_cookie {
    std::string name;         // a token
    std::string value = {};   // no control byte, space, quote, comma, semicolon or backslash
    std::string path = "/";   // "": the directory of the request's path
    std::string domain = {};  // "": this host alone; else it and those below it
    // Neither: until the browser ends. Browsers keep nothing for more than 400 days.
    std::optional<std::chrono::seconds> max_age = {};      // 0 or less: forget it; wins
    std::optional<std::chrono::sys_seconds> expires = {};  // years 1970 to 9999
    bool secure = false;                                   // only by TLS, and to this machine
    bool http_only = true;                                 // not for scripts
    same_site_rule same_site = same_site_rule::lax;
    bool partitioned = false;  // one for each site that embeds this one; demands `secure`

    // The value of the Set-Cookie field. Errors: std::invalid_argument for a name that is no token,
    // a byte that its place does not allow, a path without '/', a name and value of more than 4,096
    // bytes or another attribute of more than 1,024 together, and for a cookie that browsers
    // refuse: `__Secure-` without `secure`; `__Host-` without `secure`, with a domain or another
    // path than "/"; same_site_rule::none or `partitioned` without `secure`.
    std::string field_value() const;
};

// Adds a Set-Cookie field. Errors: as set_cookie::field_value(), and no change.
response& add_cookie(response& answer, const set_cookie& c);
response&& add_cookie(response&& answer, const set_cookie& c);

// Makes a browser forget the cookie. `c` has the name, the path and the domain that it was set
// with, and `secure` where its name demands it; its value and its times do not matter.
// Errors: as add_cookie().
response& expire_cookie(response& answer, set_cookie c);
response&& expire_cookie(response&& answer, set_cookie c);

}  // namespace coppice::http
