// never_stop_token: the token of an operation that is never stopped; every environment's default.
#pragma once

#include <coppice/base/version.hpp>

namespace coppice {

// A token without a source. Registers no callback: its callback type is empty. Threads: any. Cost:
// none. Source: [stoptoken.never].
class never_stop_token {
    struct callback {
        explicit callback(never_stop_token, auto&&) noexcept {}
    };

public:
    template <class>
    using callback_type = callback;

    static constexpr bool stop_requested() noexcept { return false; }
    static constexpr bool stop_possible() noexcept { return false; }
    bool operator==(const never_stop_token&) const = default;
};

}  // namespace coppice
