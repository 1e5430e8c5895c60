// The timer of http/pause.hpp.
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/io/context.hpp>

namespace coppice::http {

using namespace internal;

task<> pause(const request& r, duration time) {
    co_await execution::stop_when(
        execution::schedule_after(r.loop().get_scheduler(), execution::time_span(time)),
        r.stop_token());
}

}  // namespace coppice::http
