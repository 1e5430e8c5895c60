// into_variant: turns several value completions into one, a variant of tuples.
#pragma once
// Source: [exec.into.variant].

#include <coppice/exec/internal/into_variant_sender.hpp>

namespace coppice::execution {

// Sends one value: a variant of a tuple for each of the child's value completions. An exception
// from moving the values is sent as an error. Cost: no allocation.
struct into_variant_t : sender_adaptor_closure<into_variant_t> {
    template <sender Sndr>
    constexpr auto operator()(Sndr&& sndr) const {
        using result = internal::into_variant_sender<std::decay_t<Sndr>>;
        static_assert(pipeline_check<result>::done);
        return result(decltype(result::data)(), static_cast<Sndr&&>(sndr));
    }
    constexpr auto operator()() const noexcept { return execution::bind_adaptor(*this); }
};
inline constexpr into_variant_t into_variant{};

}  // namespace coppice::execution
