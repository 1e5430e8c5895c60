// stopped_as_optional, stopped_as_error: turn a stop into an empty optional, or into an error.
#pragma once
// The draft composes both from let_stopped and just; here they are receivers. Cost: no allocation.
// Source: [exec.stopped.opt], [exec.stopped.err].

#include <coppice/exec/internal/stopped_as_sender.hpp>

namespace coppice::execution {

// Sends the value as an optional, which is empty if the child was stopped. The child must have
// exactly one value completion, with one value.
struct stopped_as_optional_t : sender_adaptor_closure<stopped_as_optional_t> {
    template <sender Sndr>
    constexpr auto operator()(Sndr&& sndr) const {
        using result = internal::stopped_as_optional_sender<std::decay_t<Sndr>>;
        static_assert(pipeline_check<result>::done);
        return result(decltype(result::data)(), static_cast<Sndr&&>(sndr));
    }
    constexpr auto operator()() const noexcept { return execution::bind_adaptor(*this); }
};
inline constexpr stopped_as_optional_t stopped_as_optional{};

// Sends `error` if the child was stopped.
struct stopped_as_error_t {
    template <sender Sndr, internal::movable_value Error>
    constexpr auto operator()(Sndr&& sndr, Error&& error) const {
        using result = internal::stopped_as_error_sender<std::decay_t<Error>, std::decay_t<Sndr>>;
        static_assert(pipeline_check<result>::done);
        return result(static_cast<Error&&>(error), static_cast<Sndr&&>(sndr));
    }
    template <internal::movable_value Error>
    constexpr auto operator()(Error&& error) const
        noexcept(internal::nothrow_decay_copyable<Error>) {
        return execution::bind_adaptor(*this, static_cast<Error&&>(error));
    }
};
inline constexpr stopped_as_error_t stopped_as_error{};

}  // namespace coppice::execution
