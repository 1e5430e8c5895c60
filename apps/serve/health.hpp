// --healthcheck: asks the server that runs with the same options whether it is well.
#pragma once

#include "options.hpp"

namespace serve {

// Asks for /livez, for at most 5 s: on the admin listener if there is one, else at the port in the
// clear. Returns 0 if the answer is 200. Otherwise it returns 1, and says on stderr what was wrong.
int ask_for_health(const options& o);

}  // namespace serve
