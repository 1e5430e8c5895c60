// next_handler: what a filter that is a task calls to pass its request on; used by handler.hpp.
#pragma once
// A filter that is a function wraps the handler:
//
//   [](request& r, next_handler next) -> task<response> {
//       ...                                    // before the handler; may co_return an answer
//       response answer = co_await next();     // the next filter, or the handler
//       ...                                    // after it
//       co_return answer;
//   }
//
// The filter begins where and when its handler would: on the loop or on the pool, with the whole
// body, or with the head alone if the handler is declared with read_body(). The filter may have
// moved to another scheduler before it awaits next(); the handler still begins where it would
// without filters. Exceptions of the handler pass through next(). A handler that is stopped stops
// the filter too.

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http/message.hpp>
#include <coppice/task/task.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace coppice::http {

class filter;

namespace internal {

class filtered_answerer;

// A handler's function, whatever its type, together with the filters before it, if there are any.
class answerer : immovable {
public:
    answerer(bool is_async, bool is_plain) noexcept : asynchronous(is_async), plain(is_plain) {}
    virtual ~answerer() = default;
    virtual response answer(request&) const = 0;
    virtual task<response> start(request&) const = 0;
    const bool asynchronous;  // call start(), otherwise answer()
    const bool plain;         // the function behind the filters is not a task
};

}  // namespace internal

// What comes after a filter: the next filter or the handler. A filter takes it by value, so that it
// lives as long as the filter's frame. Threads: the filter's. Lifetime: shorter than the request.
class next_handler {
public:
    next_handler(next_handler&&) noexcept = default;
    next_handler& operator=(next_handler&&) noexcept = default;

    // Gives the answer of the next filter or of the handler. It starts when the task is awaited,
    // and never runs if the task is not awaited. A second call runs it again. A body that a handler
    // has read is not available to that second run: a handler that calls read_json() or
    // read_multipart() then fails with std::logic_error. Cost: one frame for the next filter; for
    // the handler, one more than its own.
    task<response> operator()() const;

private:
    friend class internal::filtered_answerer;
    next_handler(const internal::filtered_answerer& of, request& r, std::size_t index) noexcept
        : of_(&of), request_(&r), index_(index) {}
    static task<response> begin_at_home(const internal::answerer& inner, request& r);

    const internal::filtered_answerer* of_;
    request* request_;
    std::size_t index_;  // of the filter to call
};

namespace internal {

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

// Returns true if `function` is a null function pointer or an empty function wrapper.
template <class F>
bool is_empty_function(const F& function) noexcept {
    if constexpr (std::is_pointer_v<F> || std::is_assignable_v<F&, std::nullptr_t>) {
        return function == nullptr;
    } else {
        return false;
    }
}

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

}  // namespace internal

}  // namespace coppice::http
