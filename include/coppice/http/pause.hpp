// pause: waits for a time to pass in a handler, and ends at once if the request is stopped.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/http/message.hpp>
#include <coppice/task/task.hpp>

namespace coppice::http {

// Waits on the request's loop without holding a thread. If the client goes away or the deadline
// passes, the caller is stopped, in the next turn of the loop. Threads: awaited on any; the caller
// goes on on the loop. Cost: no allocation.
task<> pause(const request& r, internal::duration time);

}  // namespace coppice::http
