// continues_on, schedule_from: complete on a given scheduler instead of the child's.
#pragma once
// If the scheduler's operation fails or is stopped, the whole operation completes the same way. If
// making the scheduler's operation throws, connect throws.
// Source: [exec.continues.on], [exec.schedule.from].

#include <coppice/exec/internal/continues_on_sender.hpp>

namespace coppice::execution {

// Passes its child through. A domain replaces it to control how its execution resource is left.
struct schedule_from_t {
    template <sender Sndr>
    constexpr auto operator()(Sndr&& sndr) const {
        return internal::schedule_from_sender<std::decay_t<Sndr>>(internal::construct_each(),
                                                                  static_cast<Sndr&&>(sndr));
    }
};
inline constexpr schedule_from_t schedule_from{};

// Completes on sch with the child's results. Cost: no allocation; the results are moved once.
struct continues_on_t {
    template <sender Sndr, scheduler Sch>
    constexpr auto operator()(Sndr&& sndr, Sch&& sch) const {
        using result =
            internal::continues_on_sender<std::decay_t<Sch>,
                                          internal::schedule_from_sender<std::decay_t<Sndr>>>;
        static_assert(pipeline_check<result>::done);
        return result(static_cast<Sch&&>(sch), schedule_from(static_cast<Sndr&&>(sndr)));
    }
    template <scheduler Sch>
    constexpr auto operator()(Sch&& sch) const {
        return execution::bind_adaptor(*this, static_cast<Sch&&>(sch));
    }
};
inline constexpr continues_on_t continues_on{};

}  // namespace coppice::execution
