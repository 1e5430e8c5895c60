// A callback's stop token, deadline, allocator and scheduler come from its environment.
#include <coppice/coppice.hpp>

#include <chrono>
#include <cstdio>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

int main() {
    io::context loop;
    io::timer timer(loop);

    // [stop]
    stop_source source;
    timer.wait_for(1h, bind_env(ex::prop(get_stop_token, source.get_token()),
                                [](std::error_code error) {
                                    if (error == std::errc::operation_canceled) {
                                        std::puts("stopped");
                                    }
                                }));
    source.request_stop();
    loop.run();
    // [/stop]

    // [deadline]
    const ex::instant soon = ex::monotonic_now() + ex::time_span(2ms);
    std::error_code late;
    timer.wait_for(1h, bind_env(ex::prop(ex::get_deadline, soon), block[late]));
    std::puts(late == std::errc::operation_canceled ? "too late" : "in time");
    // [/deadline]

    // [scheduler]
    ex::run_loop here;
    timer.wait_for(1ms, bind_env(ex::prop(ex::get_scheduler, here.get_scheduler()),
                                 [&](std::error_code) {
                                     std::puts("called where the run_loop runs");
                                     here.finish();
                                 }));
    loop.run();
    here.run();
    // [/scheduler]
}
