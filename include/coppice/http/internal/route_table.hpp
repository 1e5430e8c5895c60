// Route tables: map a method and a path to a handler and the path's parameters; used by the router.
#pragma once
// Threads: add() must not run concurrently with any other call; match() may run on any number of
// threads.

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http/parameters.hpp>
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
    // Returns the members that have a name, in the order of the enumeration: "GET, HEAD, POST".
    std::string to_string() const;

private:
    static constexpr std::uint16_t bit(method m) noexcept {
        return static_cast<std::uint16_t>(1u << static_cast<unsigned>(m));
    }
    std::uint16_t bits_ = 0;
};

enum class match_status : unsigned char { found, not_found, method_not_allowed, bad_path };

// The part of a route table that does not depend on the handler's type: a tree of segments. Its
// leaves are numbers of routes.
class route_tree {
public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    // Adds a route for one method, or for every method that has none of its own at the pattern.
    // Routes are numbered from 0 as they are added. Errors: std::invalid_argument, and no change,
    // for a malformed pattern or a route that exists.
    void add(method verb, std::string_view pattern) {
        insert(static_cast<std::size_t>(verb), pattern);
    }
    void add_any(std::string_view pattern) { insert(any_slot, pattern); }

    struct match_result {
        match_status status = match_status::not_found;
        std::uint32_t route = none;
        method_set allowed;  // if method_not_allowed: the methods of the path
        path_parameters parameters;
    };
    // Matches a path. Cost: no allocation. A path that is a pattern without parameters takes a
    // look-up in a hash table. Other paths take O(segments * log(siblings)) without ambiguity,
    // O(nodes) at worst.
    match_result match(method, std::string_view path) const noexcept;

private:
    struct segment;
    struct search;
    // The routes that end at one place, by method.
    static constexpr std::size_t any_slot = method_count;
    struct leaf {
        std::array<std::uint32_t, method_count + 1> routes;
        leaf() noexcept { routes.fill(none); }
    };
    struct node {
        std::vector<std::pair<std::string, std::uint32_t>> literals;  // sorted; text -> node
        std::uint32_t integer = none;                                 // node after {:int}
        std::uint32_t plain = none;                                   // node after {}
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
    // A hash table with linear probing. Its size is a power of two, and at most half of it is used.
    std::vector<whole> wholes_ = std::vector<whole>(2);
    std::size_t whole_count_ = 0;
    std::vector<std::vector<std::string>>
        names_;  // by route: the names of its parameters, in order
};

template <class Handler>
struct route_match {
    match_status status = match_status::not_found;
    const Handler* handler = nullptr;  // not null if found
    method_set allowed;                // if method_not_allowed: for the Allow field
    path_parameters parameters;        // if found: the route's, by name
};

// Routes with handlers of one type. Adding routes does not move handlers.
template <class Handler>
class route_table {
public:
    // Adds a route. GET's handler also answers HEAD unless HEAD has its own. Errors:
    // std::invalid_argument, and no change, for a malformed pattern or a route that exists.
    void add(method verb, std::string_view pattern, Handler handler) {
        handlers_.push_back(std::make_unique<Handler>(std::move(handler)));
        scope_exit undo([this] { handlers_.pop_back(); });
        tree_.add(verb, pattern);
        undo.dismiss();
    }
    // Adds a route for every method, unknown ones included, that has no handler of its own there.
    void add_any(std::string_view pattern, Handler handler) {
        handlers_.push_back(std::make_unique<Handler>(std::move(handler)));
        scope_exit undo([this] { handlers_.pop_back(); });
        tree_.add_any(pattern);
        undo.dismiss();
    }
    // Matches a path. Lifetime: the result points into the table and into `path`. Cost: see
    // route_tree::match.
    route_match<Handler> match(method verb, std::string_view path) const noexcept {
        const route_tree::match_result found = tree_.match(verb, path);
        return {found.status,
                found.route == route_tree::none ? nullptr : handlers_[found.route].get(),
                found.allowed, found.parameters};
    }
    std::size_t size() const noexcept { return handlers_.size(); }
    // Returns a handler by the number of its route; routes are numbered in the order of adding.
    Handler& handler_at(std::size_t route) noexcept { return *handlers_[route]; }

private:
    route_tree tree_;
    std::vector<std::unique_ptr<Handler>> handlers_;
};

}  // namespace coppice::http::internal
