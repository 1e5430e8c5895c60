// The room's internal namespace, which sees coppice's (base/internal/namespaces.hpp).
#pragma once

#include <coppice/base/internal/namespaces.hpp>

namespace coppice::mpi::internal {
using namespace coppice::internal;
}
