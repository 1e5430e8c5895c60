// answerer: a handler's function, whatever its type.
#pragma once

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http/request.hpp>
#include <coppice/http/response.hpp>
#include <coppice/task/task.hpp>

#include <concepts>
#include <cstddef>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace coppice::http::internal {

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

// Returns true if `function` is a null function pointer or an empty function wrapper.
template <class F>
bool is_empty_function(const F& function) noexcept {
    if constexpr (std::is_pointer_v<F> || std::is_assignable_v<F&, std::nullptr_t>) {
        return function == nullptr;
    } else {
        return false;
    }
}

// A handler of one type. Errors: std::invalid_argument for an empty function.
template <class F>
class answerer_of final : public answerer {
    using result = std::invoke_result_t<const F&, request&>;
    static_assert(std::same_as<result, response> || std::same_as<result, task<response>>,
                  "coppice::http: a handler must return a response or a task<response>");
    static constexpr bool is_async = std::same_as<result, task<response>>;

public:
    template <class G>
    explicit answerer_of(std::in_place_t, G&& g)
        : answerer(is_async, !is_async), function_(std::forward<G>(g)) {
        if (is_empty_function(function_)) {
            throw std::invalid_argument("a handler is an empty function");
        }
    }
    response answer(request& r) const override {
        if constexpr (is_async) {
            return response(500);  // never called
        } else {
            return function_(r);
        }
    }
    task<response> start(request& r) const override {
        if constexpr (is_async) {
            return function_(r);
        } else {
            return completed(function_, r);
        }
    }

private:
    static task<response> completed(const F& f, request& r) { co_return f(r); }

    F function_;
};

}  // namespace coppice::http::internal
