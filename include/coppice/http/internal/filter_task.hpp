// filter_task: a filter that is a task; and a handler behind a chain of such filters.
#pragma once

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http/internal/answerer.hpp>
#include <coppice/http/next.hpp>
#include <coppice/http/request.hpp>
#include <coppice/http/response.hpp>
#include <coppice/task/task.hpp>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace coppice::http {

class filter;

}  // namespace coppice::http

namespace coppice::http::internal {

// A filter that is a task, whatever its type.
class filter_task : immovable {
public:
    virtual ~filter_task() = default;
    virtual task<response> run(request&, next_handler) const = 0;
};

template <class F>
concept filtering_function = std::is_invocable_v<const std::decay_t<F>&, request&, next_handler>;

// True if a filter takes a reference to its next_handler, which is gone when the filter's task
// starts.
template <class F>
inline constexpr bool refers_to_next =
    std::is_invocable_v<const F&, request&, const next_handler&> ||
    std::is_same_v<F, task<response> (*)(request&, next_handler&&)>;
template <class F>
    requires requires { &F::operator(); }
inline constexpr bool refers_to_next<F> =
    std::is_invocable_v<const F&, request&, const next_handler&> ||
    std::is_same_v<decltype(&F::operator()), task<response> (F::*)(request&, next_handler&&) const>;

template <class F>
class filter_task_of final : public filter_task {
    static_assert(
        std::same_as<std::invoke_result_t<const F&, request&, next_handler>, task<response>>,
        "coppice::http: a filter that is a function must return a task<response>, since "
        "next() gives a task; one that is no task derives from http::filter");
    static_assert(!refers_to_next<F>,
                  "coppice::http: a filter takes its next_handler by value, since a reference "
                  "would be to what is gone when the filter's task starts");

public:
    template <class G>
    explicit filter_task_of(std::in_place_t, G&& g) : function_(std::forward<G>(g)) {}
    task<response> run(request& r, next_handler next) const override {
        return function_(r, std::move(next));
    }

private:
    F function_;
};

// The filters of one group, after those of the enclosing groups. The lists grow only before a
// server starts.
struct filter_chain {
    std::vector<std::shared_ptr<const filter>> filters;  // not the router's own
    std::vector<std::shared_ptr<const filter_task>> tasks;
};

// A handler's function behind the tasks of a chain. Lifetime: the chain outlives it.
class filtered_answerer final : public answerer {
public:
    filtered_answerer(std::unique_ptr<answerer> inner, const filter_chain& chain) noexcept
        : answerer(true, inner->plain), inner_(std::move(inner)), chain_(chain) {}
    response answer(request&) const override { return response(500); }  // never called
    task<response> start(request& r) const override { return next_handler(*this, r, 0)(); }

private:
    friend class http::next_handler;
    const std::unique_ptr<answerer> inner_;
    const filter_chain& chain_;
};

}  // namespace coppice::http::internal
