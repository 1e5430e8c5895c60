// router: collects the handlers and filters of a server, each at a method and a pattern of paths.
#pragma once
// A pattern is '/' and segments: "/users", "/users/{id:int}", "/users/{name}", "/static/{path...}".
//
//   literal       that text, compared with the percent-decoded segment
//   {name:int}    an optional '-' and digits that fit std::int64_t
//   {name}        any segment that is not empty
//   {name...}     only last: the rest of the path, maybe empty, but with the slash before it
//
// If several patterns match, the kind that is earlier in this list wins, segment by segment from
// the left. If a pattern fails further right, or lacks the requested method, the next one is tried.
// Only if no matching pattern has the method is the result method_not_allowed, with every method
// that any of them has.
//
// Paths are not normalized: "/a//b" has an empty segment, and "/a" and "/a/" are two paths. Paths
// that would be safe only after normalization are refused before any route is looked at (bad_path,
// for a 400): a malformed escape, a NUL, and a segment "." or "..", also if escapes spell the dots
// or the slashes next to them. No parameter, decoded, therefore leads upward or ends early.

#include <coppice/http/handler.hpp>
#include <coppice/http/internal/filter_task.hpp>
#include <coppice/http/internal/route_scope.hpp>
#include <coppice/http/internal/route_table.hpp>
#include <coppice/http/parse.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace coppice::http {

class route_group;

namespace internal {

// The functions by which routers and groups take handlers and filters. They return the object on
// which a chain of calls continues: a router by reference, and a group by value, since it may be a
// temporary. Errors: std::invalid_argument for a malformed pattern, a pattern that exists, or a
// filter that is null or an empty function; what allocation throws. Nothing has changed then.
template <class Self, class Chained>
class route_adder {
public:
    // Adds a handler for one method at the pattern. A handler for GET also answers HEAD where HEAD
    // has none.
    Chained get(std::string_view pattern, handler h) {
        return self().add(method::get, pattern, std::move(h));
    }
    Chained post(std::string_view pattern, handler h) {
        return self().add(method::post, pattern, std::move(h));
    }
    Chained put(std::string_view pattern, handler h) {
        return self().add(method::put, pattern, std::move(h));
    }
    Chained del(std::string_view pattern, handler h) {
        return self().add(method::del, pattern, std::move(h));
    }
    Chained patch(std::string_view pattern, handler h) {
        return self().add(method::patch, pattern, std::move(h));
    }
    Chained options(std::string_view pattern, handler h) {
        return self().add(method::options, pattern, std::move(h));
    }
    Chained head(std::string_view pattern, handler h) {
        return self().add(method::head, pattern, std::move(h));
    }
    // Adds a handler for every method that has no handler of its own at the pattern.
    Chained any(std::string_view pattern, handler h) {
        return self().add(std::nullopt, pattern, std::move(h));
    }

    // Adds a filter that is a task: a callable that takes (request&, next_handler) and returns a
    // task<response>; see next.hpp. It filters the requests that a handler answers, including those
    // of routes that were added earlier. The filter that was added first is the outermost.
    template <filtering_function F>
    Chained use(F&& function) {
        std::shared_ptr<const filter_task_of<std::decay_t<F>>> made;
        if (!is_empty_function<std::decay_t<F>>(function)) {
            made = std::make_shared<const filter_task_of<std::decay_t<F>>>(
                std::in_place, std::forward<F>(function));
        }
        self().add_filter(std::shared_ptr<const filter_task>(std::move(made)));
        return self();
    }
    // Adds a filter that looks at heads before any filter that is a task begins, and at answers
    // after all of those have ended. before() is called in the order in which filters were added,
    // after() in the opposite order.
    Chained use(std::shared_ptr<const filter> f) {
        self().add_filter(std::move(f));
        return self();
    }

    // Makes a group: routes with a common prefix, which may have parameters, and with filters of
    // their own. The prefix "" makes a group at the same place. Errors: std::invalid_argument for a
    // prefix that is not empty and does not begin with '/', or ends with it.
    auto group(std::string_view prefix) { return self().make_group(prefix); }
    // Makes a group at the same place with these filters: `routes.with(a, b).get("/x", handler)`.
    template <class... Filters>
    auto with(Filters&&... filters) {
        auto made = self().make_group({});
        (made.use(std::forward<Filters>(filters)), ...);
        return made;
    }

private:
    Self& self() noexcept { return static_cast<Self&>(*this); }
};

}  // namespace internal

// A route, as it was added.
struct route_name {
    std::string method;   // "GET"; "*" for those of any()
    std::string pattern;  // with the prefixes of its groups
};

// Collects handlers before a server starts. Patterns: see above. Threads: one at a time until the
// server starts; then match() on any.
class router : public internal::route_adder<router, router&> {
public:
    // Returns the filters for every request, in the order of use(). They also see requests that no
    // handler answers.
    const std::vector<std::shared_ptr<const filter>>& filters() const noexcept { return filters_; }
    // Returns true if a filter that is not a task was added to this router or to a group.
    bool has_filters() const noexcept { return has_filters_; }
    // Returns true if a handler was declared with offload().
    bool wants_pool() const noexcept { return wants_pool_; }

    // Returns the routes in the order in which they were added.
    const std::vector<route_name>& names() const noexcept { return names_; }
    // Returns the handler for a request, or why there is none. Lifetime: `path` and this router
    // outlive the result.
    internal::route_match<handler> match(method verb, std::string_view path) const noexcept {
        return routes_.match(verb, path);
    }

private:
    friend class internal::route_adder<router, router&>;
    friend class route_group;

    router& add(std::optional<method> verb, std::string_view pattern, handler&& h) {
        add_to(0, verb, pattern, std::move(h));
        return *this;
    }
    void add_filter(std::shared_ptr<const filter> f) { add_filter_to(0, std::move(f)); }
    void add_filter(std::shared_ptr<const internal::filter_task> f) {
        add_filter_to(0, std::move(f));
    }
    route_group make_group(std::string_view prefix);

    // Scopes are numbered; 0 is this router.
    void make_own_scope();
    std::size_t make_scope(std::size_t parent, std::string_view prefix);
    void add_to(std::size_t scope, std::optional<method> verb, std::string_view pattern,
                handler&& h);
    void add_filter_to(std::size_t scope, std::shared_ptr<const filter> f);
    void add_filter_to(std::size_t scope, std::shared_ptr<const internal::filter_task> f);
    bool is_within(std::size_t scope, std::size_t outer) const noexcept;
    template <class Filter>
    void insert_filter(std::size_t scope, bool is_task, std::shared_ptr<const Filter> f,
                       std::vector<std::shared_ptr<const Filter>> internal::filter_chain::* list);

    // Handlers refer to the chains in the scopes, so the routes are destroyed first.
    std::vector<std::unique_ptr<internal::route_scope>> scopes_;
    internal::route_table<handler> routes_;
    std::vector<std::size_t> scope_of_;  // by route
    std::vector<route_name> names_;      // by route
    std::vector<std::shared_ptr<const filter>> filters_;
    bool wants_pool_ = false;
    bool has_filters_ = false;
};

// Routes of a router with a common prefix and filters of their own. The filters of the router and
// of the enclosing groups come first. A request that no handler of the group answers (404, 405, the
// answer to OPTIONS) passes only the filters of the router that are not tasks. Lifetime: the router
// outlives the group, and is not moved before the group's last use.
class route_group : public internal::route_adder<route_group, route_group> {
private:
    friend class router;
    friend class internal::route_adder<route_group, route_group>;

    route_group(router& of, std::size_t scope) noexcept : router_(&of), scope_(scope) {}
    route_group& add(std::optional<method> verb, std::string_view pattern, handler&& h) {
        router_->add_to(scope_, verb, pattern, std::move(h));
        return *this;
    }
    template <class Filter>
    void add_filter(std::shared_ptr<const Filter> f) {
        router_->add_filter_to(scope_, std::move(f));
    }
    route_group make_group(std::string_view prefix) {
        return {*router_, router_->make_scope(scope_, prefix)};
    }

    router* router_;
    std::size_t scope_;
};

inline route_group router::make_group(std::string_view prefix) {
    return {*this, make_scope(0, prefix)};
}

}  // namespace coppice::http
