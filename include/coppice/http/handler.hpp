// handler, filter, and router: what answers a request, and how it is chosen.
#pragma once

#include <coppice/http/message.hpp>
#include <coppice/http/next.hpp>
#include <coppice/http/router.hpp>
#include <coppice/task/task.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace coppice::http {

// What a handler needs in order to run.
struct handler_needs {
    bool pool = false;  // computes for long, or blocks: runs on the pool if there is one
    bool body = false;  // reads the body itself, through request::incoming()
    friend constexpr handler_needs operator|(handler_needs a, handler_needs b) noexcept {
        return {a.pool || b.pool, a.body || b.body};
    }
};
template <class F>
struct declared_handler {
    F function;
    handler_needs needs;
};
template <class F>
inline constexpr bool is_declared_handler = false;
template <class F>
inline constexpr bool is_declared_handler<declared_handler<F>> = true;

template <class F>
auto declare(F&& function, handler_needs needs) {
    if constexpr (is_declared_handler<std::remove_cvref_t<F>>) {
        function.needs = function.needs | needs;
        return std::remove_cvref_t<F>(std::forward<F>(function));
    } else {
        return declared_handler<std::decay_t<F>>{std::forward<F>(function), needs};
    }
}
// Declares a handler that computes for long or blocks. It runs on the pool in every model except
// `single`, which has no pool. On the pool it may fork, also through wait_for_tasks: such tasks run
// side by side.
template <class F>
auto offload(F&& function) {
    return http::declare(std::forward<F>(function), {.pool = true});
}
// Declares a handler that reads the body piece by piece, through request::incoming(). It must
// return a task<response>. It starts when the head has arrived. It may answer before it has read
// the whole body; the connection is then closed.
template <class F>
auto read_body(F&& function) {
    return http::declare(std::forward<F>(function), {.body = true});
}

// A callable that takes a request& and returns a response or a task<response>.
// Threads: a server with several threads calls it on all of them at once. A task may end on another
// thread than it began on. Lifetime: the request and its views stay valid until the answer is made.
class handler {
public:
    // Errors: std::invalid_argument for an empty function, and for a handler that reads its body
    // but returns no task; what copying the callable throws; what allocation throws. Cost: one
    // allocation.
    template <class F>
    handler(declared_handler<F> declared) : handler(std::move(declared.function)) {
        needs_ = declared.needs;
        starts_early_ = needs_.body;
        if (needs_.body && !is_asynchronous()) {
            throw std::invalid_argument("a handler that reads its body must return a task");
        }
    }
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, handler> &&
                 !is_declared_handler<std::remove_cvref_t<F>> &&
                 std::is_invocable_v<const std::decay_t<F>&, request&>)
    handler(F&& function)
        : callable_(std::make_unique<model<std::decay_t<F>>>(std::forward<F>(function))) {
        using answer = std::invoke_result_t<const std::decay_t<F>&, request&>;
        static_assert(std::same_as<answer, response> || std::same_as<answer, task<response>>,
                      "coppice::http: a handler must return a response or a task<response>");
        const auto& made = static_cast<const model<std::decay_t<F>>&>(*callable_);
        if (internal::is_empty_function(made.function)) {
            throw std::invalid_argument("a handler is an empty function");
        }
    }

    // Returns what offload() and read_body() have declared.
    handler_needs needs() const noexcept { return needs_; }
    // Returns true if start() is to be called, false if answer() is.
    bool is_asynchronous() const noexcept { return callable_->asynchronous; }
    // Returns true if the callable returns a response and no task, even behind filters that are
    // tasks.
    bool is_plain() const noexcept { return callable_->plain; }
    // Returns true if the handler, or a filter of its group, starts as soon as the head has
    // arrived.
    bool starts_early() const noexcept { return starts_early_; }
    // Returns the filters of its group, or nullptr if it has none.
    const internal::filter_chain* chain() const noexcept { return chain_; }
    response answer(request& r) const { return callable_->answer(r); }
    // Runs the filters of its group that are tasks, and then the handler.
    task<response> start(request& r) const { return callable_->start(r); }

private:
    friend class router;

    template <class F>
    struct model final : internal::answerer {
        static constexpr bool is_async =
            std::same_as<std::invoke_result_t<const F&, request&>, task<response>>;
        template <class G>
        explicit model(G&& g) : answerer(is_async, !is_async), function(std::forward<G>(g)) {}
        response answer(request& r) const override {
            if constexpr (is_async) {
                return response(500);  // never called
            } else {
                return function(r);
            }
        }
        task<response> start(request& r) const override {
            if constexpr (is_async) {
                return function(r);
            } else {
                return completed(function, r);
            }
        }
        static task<response> completed(const F& f, request& r) { co_return f(r); }
        F function;
    };
    // Puts the handler behind these filters, which must outlive it. `tasks`: some of them are
    // tasks, or are about to be. Errors: std::bad_alloc, and no change.
    void put_behind(const internal::filter_chain& chain, bool tasks);
    // Called when the chain has changed.
    void refresh() noexcept;

    std::unique_ptr<internal::answerer> callable_;
    const internal::filter_chain* chain_ = nullptr;
    handler_needs needs_;
    bool starts_early_ = false;
    bool behind_tasks_ = false;
};

// Looks at requests before their handlers do, and at answers before they are sent. For what routes
// have in common and what needs no waiting. A filter that waits is a function; see next.hpp.
// Threads: as for handlers. Errors: as for handlers.
class filter {
public:
    virtual ~filter() = default;
    // Returns an answer to send instead of the handler's, or nothing. Called once for each request,
    // when its head has arrived. body() is "" then, and the server does not wait for it.
    virtual std::optional<response> before(const request&) const { return std::nullopt; }
    // May change the answer, including one that another filter or the server gave. Not called for
    // what the connection answers by itself: the refusal of a malformed head or body, which is no
    // request; the 413 for a chunked body that exceeds the limit while the server receives it for a
    // handler; the 503 for a request that there is no memory to receive; and the 503 for a handler
    // that does not end after its time is up and it was stopped.
    virtual void after(const request&, response&) const {}
};

class route_group;

namespace internal {

// A router or a group, as its routes see it.
struct route_scope {
    std::string prefix;
    std::size_t parent;  // less than its own number; 0 for the router, which is number 0
    filter_chain chain;
};

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

// Collects handlers before a server starts. Patterns: see router.hpp.
class router : public internal::route_adder<router, router&> {
public:
    // Returns the filters for every request, in the order of use(). They also see requests that no
    // handler answers.
    const std::vector<std::shared_ptr<const filter>>& filters() const noexcept { return filters_; }
    // Returns true if a filter that is not a task was added to this router or to a group.
    bool has_filters() const noexcept { return has_filters_; }
    // Returns true if a handler was declared with offload().
    bool wants_pool() const noexcept { return wants_pool_; }

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
