// Groups of routes, and how a request passes through filters that are tasks.
#include <coppice/http/internal/filter_task.hpp>
#include <coppice/http/internal/request_origin.hpp>
#include <coppice/http/router.hpp>
#include <coppice/io/context.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <stdexcept>
#include <string>

namespace coppice::http {

using namespace internal;

// Not a coroutine: returns the task of the filter.
task<response> next_handler::operator()() const {
    const auto& tasks = of_->chain_.tasks;
    if (index_ == tasks.size()) return begin_at_home(*of_->inner_, *request_);
    return tasks[index_]->run(*request_, next_handler(*of_, *request_, index_ + 1));
}

// Starts the handler where it would run without filters. A filter may have moved to another thread,
// and a handler relies on its loop, or on the pool that it was declared for.
task<response> next_handler::begin_at_home(const answerer& inner, request& r) {
    const request_origin* const origin = r.origin_;
    if (origin != nullptr && origin->pool != nullptr) {
        if (!origin->pool->is_current()) co_await origin->pool->get_scheduler().schedule();
    } else if (origin != nullptr && origin->loop != nullptr) {
        if (!origin->loop->is_current()) co_await origin->loop->get_scheduler().schedule();
    }
    if (!inner.asynchronous) co_return inner.answer(r);
    co_return co_await inner.start(r);
}

// Continues where the handler runs, and always through its queue, so that a thread that lets a
// request go on does not run its handler.
task<> next_handler::queue_at_home(const request& r) {
    if (r.origin_ != nullptr && r.origin_->pool != nullptr) {
        co_await r.origin_->pool->get_scheduler().schedule();
    } else {
        co_await r.loop().get_scheduler().schedule();
    }
}

next_handler::place next_handler::place_of(const request& r) noexcept {
    if (r.origin_ == nullptr) return {};
    const internal::request_origin& from = *r.origin_;
    if (from.pool != nullptr) return {from.pool, from.followed};
    return {from.loop, from.followed};
}

void handler::put_behind(const filter_chain& chain, bool tasks) {
    if (tasks && !behind_tasks_) {
        // If there is no memory, callable_ has not been moved from.
        callable_ = std::make_unique<filtered_answerer>(std::move(callable_), chain);
        behind_tasks_ = true;
    }
    chain_ = &chain;
    refresh();
}

void handler::refresh() noexcept {
    starts_early_ = needs_.body || (chain_ != nullptr && !chain_->filters.empty());
}

void router::make_own_scope() {
    if (scopes_.empty()) scopes_.push_back(std::make_unique<route_scope>());
}

std::size_t router::make_scope(std::size_t parent, std::string_view prefix) {
    if (!prefix.empty() && (prefix.front() != '/' || prefix.back() == '/')) {
        throw std::invalid_argument("a group's prefix begins with '/' and does not end with it");
    }
    make_own_scope();
    const route_scope& outer = *scopes_[parent];
    scopes_.push_back(std::make_unique<route_scope>(
        route_scope{outer.prefix + std::string(prefix), parent, outer.chain}));
    return scopes_.size() - 1;
}

bool router::is_within(std::size_t scope, std::size_t outer) const noexcept {
    while (scope > outer) scope = scopes_[scope]->parent;
    return scope == outer;
}

void router::add_to(std::size_t scope, std::optional<method> verb, std::string_view pattern,
                    handler&& h) {
    const bool pool = h.needs().pool;
    std::string whole;
    if (scope < scopes_.size()) {
        const route_scope& s = *scopes_[scope];
        // Otherwise the pattern would extend the last segment of the prefix.
        if (!s.prefix.empty() && !pattern.empty() && pattern.front() != '/') {
            throw std::invalid_argument("route \"" + std::string(pattern) +
                                        "\" of a group: it does not start with '/'");
        }
        whole = s.prefix + std::string(pattern);
        pattern = whole;
        if (!s.chain.filters.empty() || !s.chain.tasks.empty()) {
            h.put_behind(s.chain, !s.chain.tasks.empty());
        }
    }
    h.route_ = names_.size();
    scope_of_.push_back(scope);
    scope_exit undo([&] { scope_of_.pop_back(); });
    names_.push_back({verb ? std::string(to_string(*verb)) : "*", std::string(pattern)});
    scope_exit undo_name([&] { names_.pop_back(); });
    if (verb) {
        routes_.add(*verb, pattern, std::move(h));
    } else {
        routes_.add_any(pattern, std::move(h));
    }
    undo.dismiss();
    undo_name.dismiss();
    wants_pool_ = wants_pool_ || pool;
}

// Everything that may fail comes first. A handler with an empty chain answers as one without a
// chain.
template <class Filter>
void router::insert_filter(std::size_t scope, bool is_task, std::shared_ptr<const Filter> f,
                           std::vector<std::shared_ptr<const Filter>> filter_chain::* list) {
    make_own_scope();
    for (std::size_t s = scope; s != scopes_.size(); ++s) {
        if (!is_within(s, scope)) continue;
        auto& filters = scopes_[s]->chain.*list;
        filters.reserve(filters.size() + 1);
    }
    for (std::size_t route = 0; route != scope_of_.size(); ++route) {
        const std::size_t s = scope_of_[route];
        if (is_within(s, scope)) routes_.handler_at(route).put_behind(scopes_[s]->chain, is_task);
    }
    // The filters of this scope are the beginning of the lists of the scopes inside it.
    const auto place = static_cast<std::ptrdiff_t>((scopes_[scope]->chain.*list).size());
    for (std::size_t s = scope; s != scopes_.size(); ++s) {
        if (!is_within(s, scope)) continue;
        auto& filters = scopes_[s]->chain.*list;
        filters.insert(filters.begin() + place, f);
    }
    for (std::size_t route = 0; route != scope_of_.size(); ++route) {
        routes_.handler_at(route).refresh();
    }
}

void router::add_filter_to(std::size_t scope, std::shared_ptr<const filter> f) {
    if (f == nullptr) throw std::invalid_argument("a filter is null");
    if (scope == 0) {
        filters_.push_back(std::move(f));
    } else {
        insert_filter(scope, false, std::move(f), &filter_chain::filters);
    }
    has_filters_ = true;
}

void router::add_filter_to(std::size_t scope, std::shared_ptr<const filter_task> f) {
    if (f == nullptr) throw std::invalid_argument("a filter is an empty function");
    insert_filter(scope, true, std::move(f), &filter_chain::tasks);
}

}  // namespace coppice::http
