// Routes: from a method and a path to a handler and the path's parameters; used by the server.
#pragma once
// A pattern is '/' and segments: "/users", "/users/{id:int}", "/users/{name}", "/static/{path...}".
//
//   literal       that text, compared with the percent-decoded segment
//   {name:int}    an optional '-' and digits that fit std::int64_t
//   {name}        any segment that is not empty
//   {name...}     only last: the rest of the path, maybe empty, but with the slash before it
//
// Where several patterns match, the earlier kind in this list wins, segment by segment from the
// left; a pattern that fails further right gives way to the next. A pattern without the asked
// method gives way too; only if none has it the answer is method_not_allowed, with every method
// that any of them has.
//
// Paths are not normalised: "/a//b" has an empty segment, "/a" and "/a/" are two paths. What would
// need normalising to be safe is refused before any route is looked at (bad_path, for a 400): a
// malformed escape, a NUL, and a segment "." or "..", also where escapes spell the dots or
// the slashes beside them. So no parameter, decoded, leads upward or ends early.
//
// Threads: add() is not safe beside anything; match() may run on any number of threads.

#include <coppice/base/internal.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http/message.hpp>
#include <coppice/http/parse.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice::http::internal {

// A set of methods, for the Allow field.
class method_set {
public:
    constexpr method_set() noexcept = default;
    constexpr bool contains(method m) const noexcept { return (bits_ & bit(m)) != 0; }
    constexpr bool empty() const noexcept { return bits_ == 0; }
    constexpr void insert(method m) noexcept { bits_ |= bit(m); }
    constexpr method_set& operator|=(method_set other) noexcept {
        bits_ |= other.bits_;
        return *this;
    }
    friend constexpr bool operator==(method_set, method_set) noexcept = default;
    // "GET, HEAD, POST": the members that have a name, in the order of the enumeration.
    std::string to_string() const;

private:
    static constexpr std::uint16_t bit(method m) noexcept {
        return static_cast<std::uint16_t>(1u << static_cast<unsigned>(m));
    }
    std::uint16_t bits_ = 0;
};

enum class match_status : unsigned char { found, not_found, method_not_allowed, bad_path };

// The part of a route table that does not depend on the handler's type: a tree of segments whose
// leaves are numbers of routes.
class route_tree {
public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    // Adds a route for one method, or for every method that has none of its own there. Routes are
    // numbered from 0 as they are added.
    // Errors: std::invalid_argument, and no change, for a malformed pattern or a route that exists.
    void add(method verb, std::string_view pattern) {
        insert(static_cast<std::size_t>(verb), pattern);
    }
    void add_any(std::string_view pattern) { insert(any_slot, pattern); }

    struct match_result {
        match_status status = match_status::not_found;
        std::uint32_t route = none;
        method_set allowed;  // method_not_allowed: what the path has
        path_parameters parameters;
    };
    // Cost: no allocation. A path that is a pattern without parameters: a look into a hash table;
    // otherwise O(segments * log(siblings)) without ambiguity, O(nodes) at worst.
    match_result match(method, std::string_view path) const noexcept;

private:
    struct segment;
    struct search;
    // Routes that end at one place, by method.
    static constexpr std::size_t any_slot = method_count;
    struct leaf {
        std::array<std::uint32_t, method_count + 1> routes;
        leaf() noexcept { routes.fill(none); }
    };
    struct node {
        std::vector<std::pair<std::string, std::uint32_t>> literals;  // sorted; text -> node
        std::uint32_t integer = none;                                 // node behind {:int}
        std::uint32_t plain = none;                                   // node behind {}
        std::uint32_t rest = none;                                    // leaf of {...}
        std::uint32_t end = none;  // leaf of patterns that end here
    };
    static constexpr auto text_of = [](const auto& literal) {
        return std::string_view(literal.first);
    };
    // A pattern without parameters, and its leaf.
    struct whole {
        std::string path;
        std::uint32_t end = none;
    };
    static std::size_t hash_of(std::string_view path) noexcept;
    std::size_t place_of(std::string_view path) const noexcept;
    void insert_whole(std::string_view path, std::uint32_t end);
    static segment parse_segment(std::string_view pattern, std::string_view text, bool last);
    void insert(std::size_t slot, std::string_view pattern);
    std::uint32_t descend(std::uint32_t from, const segment&);

    std::vector<node> nodes_ = std::vector<node>(1);
    std::vector<leaf> leaves_;
    // Hashed, with linear probing: a power of two places, at most half of them used.
    std::vector<whole> wholes_ = std::vector<whole>(2);
    std::size_t whole_count_ = 0;
    std::vector<std::vector<std::string>> names_;  // by route: its parameters' names, in order
};

template <class Handler>
struct route_match {
    match_status status = match_status::not_found;
    const Handler* handler = nullptr;  // found: not null
    method_set allowed;                // method_not_allowed: for the Allow field
    path_parameters parameters;        // found: the route's, by name
};

// Routes with handlers of one type. Handlers stay where they are when routes are added.
template <class Handler>
class route_table {
public:
    // HEAD is answered by GET's handler unless it has its own.
    // Errors: std::invalid_argument, and no change, for a malformed pattern or a route that exists.
    void add(method verb, std::string_view pattern, Handler handler) {
        handlers_.push_back(std::make_unique<Handler>(std::move(handler)));
        scope_exit undo([&] { handlers_.pop_back(); });
        tree_.add(verb, pattern);
        undo.dismiss();
    }
    // For every method, unknown ones included, that has no handler of its own there.
    void add_any(std::string_view pattern, Handler handler) {
        handlers_.push_back(std::make_unique<Handler>(std::move(handler)));
        scope_exit undo([&] { handlers_.pop_back(); });
        tree_.add_any(pattern);
        undo.dismiss();
    }
    // Lifetime: the answer points into the table and into `path`. Cost: see route_tree::match.
    route_match<Handler> match(method verb, std::string_view path) const noexcept {
        const route_tree::match_result found = tree_.match(verb, path);
        return {found.status,
                found.route == route_tree::none ? nullptr : handlers_[found.route].get(),
                found.allowed, found.parameters};
    }
    std::size_t size() const noexcept { return handlers_.size(); }
    // In the order in which they were added.
    Handler& handler_at(std::size_t route) noexcept { return *handlers_[route]; }

private:
    route_tree tree_;
    std::vector<std::unique_ptr<Handler>> handlers_;
};

}  // namespace coppice::http::internal
