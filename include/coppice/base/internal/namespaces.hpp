// The internal namespaces, for names that programs do not use; included by headers that open one.
#pragma once
// Names that headers declare only for other headers are in coppice::internal, or in the `internal`
// of their room if they are common words. So `using namespace coppice` brings no `clock`, `result`,
// or `acquire` into a program that has its own. docs/names.md lists what it does bring.
//
// A room's `internal` can see coppice's, so code in the room writes internal::NAME for either. The
// directives below do not reach programs, because they are inside namespaces that programs do not
// use.

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
