// write_env, unstoppable: give a sender an environment that answers some queries itself.
#pragma once
// Source: [exec.write.env], [exec.unstoppable].

#include <coppice/exec/internal/write_env_sender.hpp>

namespace coppice::execution {

// Makes `data` answer the sender's queries first. The receiver's environment answers what `data`
// does not. Cost: no allocation.
struct write_env_t {
    template <sender Sndr, internal::queryable Data>
    constexpr auto operator()(Sndr&& sndr, Data&& data) const {
        using result =
            internal::write_env_sender<write_env_t, std::decay_t<Data>, std::decay_t<Sndr>>;
        static_assert(pipeline_check<result>::done);
        return result(static_cast<Data&&>(data), static_cast<Sndr&&>(sndr));
    }
    template <internal::queryable Data>
    constexpr auto operator()(Data&& data) const {
        return execution::bind_adaptor(*this, static_cast<Data&&>(data));
    }
};
inline constexpr write_env_t write_env{};

// Hides the receiver's stop token, so that the sender is not stopped.
struct unstoppable_t : sender_adaptor_closure<unstoppable_t> {
    template <sender Sndr>
    constexpr auto operator()(Sndr&& sndr) const {
        return write_env(static_cast<Sndr&&>(sndr), prop(get_stop_token, never_stop_token()));
    }
    constexpr auto operator()() const noexcept { return execution::bind_adaptor(*this); }
};
inline constexpr unstoppable_t unstoppable{};

}  // namespace coppice::execution
