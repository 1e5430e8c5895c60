// bulk, bulk_chunked, bulk_unchunked: call a function for every index below a bound.
#pragma once
// By default the calls happen one after the other, where the child completes. A scheduler with many
// agents customizes bulk_chunked and bulk_unchunked (parallel_scheduler.hpp). bulk becomes
// bulk_chunked when it is connected. If the function throws, the remaining calls are skipped and
// the exception is the error. A bound of zero or less calls nothing. Source: [exec.bulk].

#include <coppice/exec/closure.hpp>
#include <coppice/exec/execution_policy.hpp>
#include <coppice/exec/internal/bulk_sender.hpp>
#include <coppice/exec/internal/task_scheduler_bulk.hpp>

#include <concepts>
#include <cstdint>

namespace coppice::execution {

// Never satisfied: its name is the compiler's message for `bulk(shape, f)`. P2300 had that form;
// P3481 put an execution policy before the shape.
template <class Tag>
concept policy_comes_first_as_in_bulk_of_par_shape_f = internal::always_false<Tag>;

// A policy that cannot be copied is held by reference.
template <class Policy>
using bulk_policy_t = std::conditional_t<std::copy_constructible<Policy>, Policy, const Policy&>;

// The number of calls: an integer of up to 64 bits, because schedulers count in 64 bits.
template <class Shape>
concept bulk_shape = std::integral<Shape> && sizeof(Shape) <= sizeof(std::uint64_t);

template <class Tag>
struct bulk_adaptor {
    // Returns the sender. The overload without a sender returns a closure.
    template <sender Sndr, class Policy, bulk_shape Shape, class F>
        requires is_execution_policy_v<std::remove_cvref_t<Policy>> &&
                 std::copy_constructible<std::decay_t<F>>
    constexpr auto operator()(Sndr&& sndr, Policy&& policy, Shape shape, F&& f) const {
        using Data = bulk_data<bulk_policy_t<std::remove_cvref_t<Policy>>, Shape, std::decay_t<F>>;
        using result = bulk_sender<Tag, Data, std::decay_t<Sndr>>;
        static_assert(pipeline_check<result>::done);
        return result(Data(static_cast<Policy&&>(policy), shape, static_cast<F&&>(f)),
                      static_cast<Sndr&&>(sndr));
    }
    template <class Policy, bulk_shape Shape, class F>
        requires is_execution_policy_v<std::remove_cvref_t<Policy>> &&
                 std::copy_constructible<std::decay_t<F>>
    constexpr auto operator()(Policy&& policy, Shape shape, F&& f) const {
        return execution::bind_adaptor(Tag(), static_cast<Policy&&>(policy), shape,
                                       static_cast<F&&>(f));
    }
    // Calls without a policy are rejected, with a reason.
    template <class Sndr, std::integral Shape, class F>
        requires(!is_execution_policy_v<std::remove_cvref_t<Sndr>>) &&
                    policy_comes_first_as_in_bulk_of_par_shape_f<Tag>
    void operator()(Sndr&& sndr, Shape shape, F&& f) const = delete;
    template <std::integral Shape, class F>
        requires policy_comes_first_as_in_bulk_of_par_shape_f<Tag>
    void operator()(Shape shape, F&& f) const = delete;
};

// Calls f(begin, end, values...) for ranges that together are [0, shape).
struct bulk_chunked_t : bulk_adaptor<bulk_chunked_t> {};
// Calls f(i, values...) for every i in [0, shape), each on an agent of its own if there are
// several.
struct bulk_unchunked_t : bulk_adaptor<bulk_unchunked_t> {};
inline constexpr bulk_chunked_t bulk_chunked{};
inline constexpr bulk_unchunked_t bulk_unchunked{};

// Calls f(i, values...) for every i in [0, shape).
struct bulk_t : bulk_adaptor<bulk_t> {
    template <sender_for<bulk_t> Sndr, class Env>
        requires bulk_movable<Sndr>
    constexpr auto transform_sender(set_value_t, Sndr&& sndr, const Env&) const {
        const auto& data = sndr.data;
        using F = std::decay_t<decltype((data.f))>;
        return bulk_chunked(
            static_cast<Sndr&&>(sndr).child, data.policy, data.shape,
            call_each<F>(internal::construct_each(), static_cast<Sndr&&>(sndr).data.f));
    }
};
inline constexpr bulk_t bulk{};

}  // namespace coppice::execution
