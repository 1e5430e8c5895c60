// direct_completion: a completion whose waiter the compiler knows, found through the initiation.
#pragma once

#include <coppice/token/internal/completion_env.hpp>

#include <system_error>

namespace coppice {

template <class... R>
class completion;
template <class Initiation, class... R>
class initiated_state;

namespace internal {

// Holds the initiation inside a token's state, so that the address of each leads to the other. It
// has no base class and one member, which is at its beginning.
template <class Initiation>
class kept_initiation {
public:
    // Constructs the initiation from what the initiating function was given.
    template <class From>
    explicit kept_initiation(From&& initiation) : initiation_(static_cast<From&&>(initiation)) {}
    // Returns the initiation, and the object that keeps it.
    Initiation& initiation() noexcept { return initiation_; }
    const Initiation& initiation() const noexcept { return initiation_; }
    static kept_initiation& of(Initiation& initiation) noexcept {
        return reinterpret_cast<kept_initiation&>(initiation);
    }

private:
    [[no_unique_address]] Initiation initiation_;
};

// A completion whose waiter the compiler knows. Tokens call an initiation with it. It converts to a
// completion<R...>. An initiation that is a template need not keep it:
//
//   template <class Completion>
//   void operator()(Completion) noexcept;      keeps nothing, and when the operation has ended:
//   Completion::of(*this)(error, results...);
//
// The waiter is then called directly, and is compiled into the operation's own callback. Everything
// else is as for completion.
template <auto* completed, class Initiation, class... R>
class direct_completion {
    using state_type = initiated_state<Initiation, R...>;

public:
    explicit direct_completion(state_type& state) noexcept : state_(&state) {}
    // Returns the completion of the operation whose initiation `part` is, or is a base of. The
    // initiation must have been called with this type of completion.
    template <class Part>
    static direct_completion of(Part& part) noexcept {
        Initiation& initiation = static_cast<Initiation&>(part);
        return direct_completion(
            static_cast<state_type&>(kept_initiation<Initiation>::of(initiation)));
    }

    void operator()(std::error_code error, R... results) && noexcept {
        completed(*state_, error, static_cast<R&&>(results)...);
    }
    operator completion<R...>() const noexcept { return completion<R...>(*state_); }
    completion_env get_env() const noexcept { return state_->env(); }
    void tell_stopped() noexcept { state_->tell_stopped(); }

private:
    state_type* state_;
};

}  // namespace internal

}  // namespace coppice
