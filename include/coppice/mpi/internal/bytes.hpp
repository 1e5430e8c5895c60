// bytes: a message whose meaning only its ends know.
#pragma once

#include <cstddef>
#include <vector>

namespace coppice::mpi::internal {

using bytes = std::vector<std::byte>;

}  // namespace coppice::mpi::internal
