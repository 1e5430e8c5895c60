// The in-place families behind one interface, so that each clause is tested on all of them.
#pragma once

#include <coppice/stop_token.hpp>

#include <cstddef>

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

template <std::size_t N, std::size_t Index>
struct asymmetric_family {
    using source = asymmetric_inplace_stop_source<N>;
    using token = asymmetric_inplace_stop_token<N, Index>;
    static constexpr token token_of(const source& s) noexcept {
        return s.template get_token<Index>();
    }
};

}  // namespace coppice::test
