// passing_view: a view whose text may be gone before the response that was made of it.
#pragma once

#include <coppice/base/internal/namespaces.hpp>

#include <concepts>
#include <string_view>

namespace coppice::http::internal {

// A std::string_view that is not const. It may change or was made here, so its text may be gone
// before the response is.
template <class View>
concept passing_view =
    std::same_as<View, std::string_view> || std::same_as<View, std::string_view&>;

}  // namespace coppice::http::internal
