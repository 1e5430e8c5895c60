// The in-place families behind one interface, so that each clause is tested on all of them.
#pragma once

#include <coppice/stop_token.hpp>

#include <optional>
#include <utility>

namespace coppice::test {

struct inplace_family {
    using source = inplace_stop_source;
    using token = inplace_stop_token;
    static constexpr token token_of(const source& s) noexcept { return s.get_token(); }
};
struct single_family {
    using source = single_inplace_stop_source;
    using token = single_inplace_stop_token;
    static constexpr token token_of(const source& s) noexcept { return s.get_token(); }
};
template <std::size_t N, std::size_t Index, std::size_t Stride = sizeof(void*)>
struct finite_family {
    using source = finite_inplace_stop_source<N, Stride>;
    using token = finite_inplace_stop_token<N, Index, Stride>;
    static constexpr token token_of(const source& s) noexcept {
        return s.template get_token<Index>();
    }
};

// A callback of a family, started and ended by hand.
template <class Family, class F>
class manual_callback {
public:
    manual_callback(typename Family::token token, F f) { callback_.emplace(token, std::move(f)); }
    void reset() noexcept { callback_.reset(); }

private:
    std::optional<stop_callback_for_t<typename Family::token, F>> callback_;
};

}  // namespace coppice::test
