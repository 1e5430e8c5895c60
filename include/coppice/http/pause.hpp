// pause: lets a handler wait for a time, and ends the wait at once if the request is stopped.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/http/message.hpp>
#include <coppice/task/task.hpp>

namespace coppice::http {

// Waits on the request's loop without occupying a thread. If the client goes away or the deadline
// passes, the caller is stopped in the next turn of the loop. A stop loses only the time. Threads:
// may be awaited on any; the caller resumes on the loop. Cost: no allocation.
task<> pause(const request& r, internal::duration time);

}  // namespace coppice::http
