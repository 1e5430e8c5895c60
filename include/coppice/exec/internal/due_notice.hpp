// due_notice: what the receiver of a timer wants to be told as soon as the timer has ended.
#pragma once
// A timer completes on its scheduler, and waits there while every thread computes. A thread that
// finds it due may give this notice before, on any thread. So a timeout stops a sender that keeps
// all threads of its pool busy. Source: ours.

#include <coppice/exec/env.hpp>

namespace coppice::execution::internal {

// A function with its argument, or nothing. Lifetime: until the timer completes.
class due_notice {
public:
    // What has happened: the time has come, or it never will, because the scheduler ends.
    enum class event : bool { has_come, never_comes };
    using function = void (*)(void*, event) noexcept;
    constexpr due_notice() noexcept = default;
    constexpr due_notice(function told, void* object) noexcept : told_(told), object_(object) {}
    // Gives the notice. Call it once at most, when the timer has ended and has not completed; the
    // timer must not complete before this returns.
    void give(event what) const noexcept {
        if (told_ != nullptr) told_(object_, what);
    }

private:
    function told_ = nullptr;
    void* object_ = nullptr;
};

// Asks the environment of a timer's receiver; no query forwards it.
struct get_due_notice_t {
    template <class Env>
    constexpr due_notice operator()([[maybe_unused]] const Env& env) const noexcept {
        if constexpr (has_query<Env, get_due_notice_t>) {
            return env.query(*this);
        } else {
            return {};
        }
    }
};
inline constexpr get_due_notice_t get_due_notice{};

}  // namespace coppice::execution::internal
