// The inner namespaces, for names that programs do not use; headers that open a room's include it.
#pragma once
// What a header declares for other headers alone is in coppice::internal, or in the `internal` of
// its room where its name is a common word. So `using namespace coppice` brings no clock, result or
// acquire into a program that has its own; docs/names.md lists what it brings.
//
// A room's `internal` sees that of coppice, so that code in the room writes internal::NAME for
// either. The directives below reach no program: they are inside of what programs do not use.

#include <coppice/base/version.hpp>

namespace coppice::internal {}

namespace coppice::execution::internal {
using namespace coppice::internal;
}
namespace coppice::io::internal {
using namespace coppice::internal;
}
namespace coppice::http::internal {
using namespace coppice::internal;
}
