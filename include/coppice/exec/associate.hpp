// associate: makes a sender part of an async scope, whose join then waits for it.
#pragma once
// The association is made when associate is called, and moves with the sender. If the scope refuses
// it, the sender completes with set_stopped. Source: [exec.associate].

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/associate_sender.hpp>

namespace coppice::execution {

// Associates sndr with token's scope. Errors: what token.wrap() and moving the sender throw. Cost:
// no allocation.
struct associate_t {
    template <sender Sndr, scope_token Token>
    auto operator()(Sndr&& sndr, Token token,
                    std::source_location where = std::source_location::current()) const {
        using wrapped = std::remove_cvref_t<decltype(token.wrap(static_cast<Sndr&&>(sndr)))>;
        using result = internal::associate_sender<internal::associate_data<Token, wrapped>>;
        static_assert(pipeline_check<result>::done);
        return result(static_cast<Token&&>(token), static_cast<Sndr&&>(sndr), where);
    }
    template <scope_token Token>
    auto operator()(Token token,
                    std::source_location where = std::source_location::current()) const {
        return execution::bind_adaptor(*this, static_cast<Token&&>(token), where);
    }
};
inline constexpr associate_t associate{};

}  // namespace coppice::execution
