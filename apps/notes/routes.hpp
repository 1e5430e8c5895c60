// The routes of coppice-notes.
#pragma once

#include "store.hpp"

#include <coppice/http/server.hpp>

namespace notes {

// Lifetime: the store outlives the routes.
coppice::http::router make_routes(store& s);

}  // namespace notes
