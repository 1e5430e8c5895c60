// next_handler: passes a request on to the next filter or the handler; for filters that wait.
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

#include <coppice/http/request.hpp>
#include <coppice/http/response.hpp>
#include <coppice/task/task.hpp>

#include <cstddef>

namespace coppice::http {

namespace internal {

class answerer;
class filtered_answerer;

}  // namespace internal

class concurrency_limit;
class load_shedding;

// What comes after a filter: the next filter or the handler. A filter takes it by value, so that it
// lives as long as the filter's frame. Threads: the filter's. Lifetime: shorter than the request.
class next_handler {
public:
    next_handler(next_handler&&) noexcept = default;
    next_handler& operator=(next_handler&&) noexcept = default;

    // Completes with the answer of the next filter or of the handler, which starts when the task is
    // awaited, and never runs if the task is not awaited. A second call runs it again. A body that
    // a handler has read is not available to that second run: a handler that calls read_json() or
    // read_multipart() then fails with std::logic_error. Cost: one frame for the next filter; for
    // the handler, one more than its own.
    task<response> operator()() const;

private:
    friend class internal::filtered_answerer;
    friend class concurrency_limit;
    friend class load_shedding;
    next_handler(const internal::filtered_answerer& of, request& r, std::size_t index) noexcept
        : of_(&of), request_(&r), index_(index) {}
    static task<response> begin_at_home(const internal::answerer& inner, request& r);
    static task<> queue_at_home(const request& r);
    struct place {
        const void* home = nullptr;  // what the request has waited for: its pool, else its loop
        bool followed = false;       // it waited for the answer before it instead
    };
    static place place_of(const request& r) noexcept;

    const internal::filtered_answerer* of_;
    request* request_;
    std::size_t index_;  // of the filter to call
};

}  // namespace coppice::http
