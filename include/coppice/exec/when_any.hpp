// when_any: runs several senders concurrently; completes with the first result, after all ended.
#pragma once
// The first value or error decides. The other senders are asked to stop, and are waited for,
// because their operations are part of this one. A sender that completes with set_stopped cannot
// win. If no sender sends a value or an error, the operation completes with set_stopped; a stop
// from outside has that effect if the senders obey it. Source: ours.
//
// when_any is not for taking one of several things: a sender that is asked to stop may already have
// a value, for example an item of a channel, and that value is dropped. select (sync/select.hpp)
// takes exactly one.

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/when_any_sender.hpp>

namespace coppice::execution {

// Sends what the first sender to complete with a value or an error sent. Takes at least one sender.
// Cost: no allocation; the winning results are moved once.
struct when_any_t {
    template <sender... Sndrs>
        requires(sizeof...(Sndrs) != 0)
    constexpr auto operator()(Sndrs&&... sndrs) const {
        using result = internal::when_any_sender<std::decay_t<Sndrs>...>;
        static_assert(pipeline_check<result>::done);
        return result(internal::construct_each(), static_cast<Sndrs&&>(sndrs)...);
    }
};
inline constexpr when_any_t when_any{};

}  // namespace coppice::execution
