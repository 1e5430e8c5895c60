// on: runs a sender, or a part of a pipeline, on a scheduler and returns.
#pragma once
//   on(sch, sndr)             runs sndr on sch; returns to where the operation was started
//   on(sndr, sch, closure)    runs closure(sndr) on sch; returns to where sndr completes
//   sndr | on(sch, closure)   as above
//
// Rewritten as starts_on and continues_on when it is connected, because only then is it known where
// to return to: the environment's start scheduler, or the scheduler on which the child completes.
// Source: [exec.on].

#include <coppice/exec/continues_on.hpp>
#include <coppice/exec/internal/on_sender.hpp>
#include <coppice/exec/starts_on.hpp>

namespace coppice::execution {

// Runs a sender or a closure on `sch` and returns; see above. If scheduling there or back fails or
// is stopped, the whole operation completes the same way. Cost: no allocation.
struct on_t {
    template <scheduler Sch, sender Sndr>
        requires(!internal::is_closure<Sndr>)
    constexpr auto operator()(Sch&& sch, Sndr&& sndr) const {
        return internal::on_sender<std::decay_t<Sch>, std::decay_t<Sndr>>(
            static_cast<Sch&&>(sch), static_cast<Sndr&&>(sndr));
    }
    template <scheduler Sch, internal::is_closure Closure>
    constexpr auto operator()(Sch&& sch, Closure&& closure) const {
        return execution::bind_adaptor(*this, static_cast<Sch&&>(sch),
                                       static_cast<Closure&&>(closure));
    }
    template <sender Sndr, scheduler Sch, internal::is_closure Closure>
    constexpr auto operator()(Sndr&& sndr, Sch&& sch, Closure&& closure) const {
        using Data = internal::on_data<std::decay_t<Sch>, std::decay_t<Closure>>;
        return internal::on_sender<Data, std::decay_t<Sndr>>(
            Data(static_cast<Sch&&>(sch), static_cast<Closure&&>(closure)),
            static_cast<Sndr&&>(sndr));
    }

    template <internal::sender_for<on_t> Sndr, class Env>
        requires std::remove_cvref_t<Sndr>::template
    returns<Env> constexpr auto transform_sender(set_value_t, Sndr&& sndr, const Env& env) const {
        return transform(static_cast<Sndr&&>(sndr).data, static_cast<Sndr&&>(sndr).child, env);
    }

private:
    template <class Data, class Child, class Env>
    static constexpr auto transform(Data&& data, Child&& child, const Env& env) {
        if constexpr (scheduler<Data>) {
            return continues_on(starts_on(static_cast<Data&&>(data), static_cast<Child&&>(child)),
                                get_start_scheduler(env));
        } else {
            auto back = get_completion_scheduler<set_value_t>(get_env(child), env);
            return continues_on(static_cast<Data&&>(data).closure(continues_on(
                                    static_cast<Child&&>(child), static_cast<Data&&>(data).sch)),
                                std::move(back));
        }
    }
};
inline constexpr on_t on{};

}  // namespace coppice::execution
