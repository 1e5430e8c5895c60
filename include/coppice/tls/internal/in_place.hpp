// in_place: a completion token that keeps an operation inside its waiter, which is told of its end.
#pragma once
// Next::receive(bytes, in_place_token<Owner>(owner)) returns an in_place_operation. Its begin()
// starts it; owner.inner_ended(error, bytes) is called once, perhaps inside begin(), and may
// destroy the operation. Nothing is allocated.

#include <coppice/stop/inplace.hpp>
#include <coppice/tls/internal/namespaces.hpp>
#include <coppice/token/completion.hpp>
#include <coppice/token/internal/completion_env.hpp>
#include <coppice/token/signature.hpp>

#include <system_error>
#include <type_traits>

namespace coppice::tls::internal {

template <class Owner, class Initiation, class... R>
class in_place_operation : initiated_state<Initiation, R...> {
public:
    template <class I>
    in_place_operation(Owner& owner, I&& initiation) noexcept
        : initiated_state<Initiation, R...>(static_cast<I&&>(initiation)), owner_(&owner) {}
    // Starts it. It ends early when `stop` is stopped.
    void begin(inplace_stop_token stop) noexcept {
        this->set_env({stop, execution::instant::never()});
        this->template call_initiation<&completed>();
    }

private:
    static void completed(completion_state<R...>& state, std::error_code error,
                          R... results) noexcept {
        static_cast<in_place_operation&>(state).owner_->inner_ended(error, results...);
    }
    Owner* owner_;
};

template <class Owner>
class in_place_token {
public:
    explicit in_place_token(Owner& owner) noexcept : owner_(&owner) {}
    template <class... R, class Initiation>
    auto initiate(signature<R...>, Initiation&& initiation) const noexcept {
        return in_place_operation<Owner, std::remove_cvref_t<Initiation>, R...>(
            *owner_, static_cast<Initiation&&>(initiation));
    }

private:
    Owner* owner_;
};

}  // namespace coppice::tls::internal
