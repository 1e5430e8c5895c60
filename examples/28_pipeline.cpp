// A pipeline: lines are read in order, looked up side by side, and written in order.
#include <coppice/parallel.hpp>
#include <coppice/pool.hpp>
#include <coppice/task.hpp>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

using namespace std::chrono_literals;
namespace parallel = coppice::parallel;

int main() {
    coppice::thread_pool pool(2);
    // [pipeline]
    int next = 0;
    const auto source = [&next]() -> std::optional<int> {
        if (next == 5) return std::nullopt;
        return next++;
    };
    const auto look_up = [&pool](int n) -> coppice::task<std::string> {
        co_await pool.get_scheduler().schedule_after(1ms);  // holds no worker
        co_return "line " + std::to_string(n);
    };
    const auto print = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
    const bool all = parallel::pipeline(parallel::on(pool), 100, source,  // 100 items in flight
                                        parallel::stage(parallel::concurrent, look_up),
                                        parallel::stage(parallel::serial_in_order, print));
    // [/pipeline]
    std::printf("%s\n", all ? "all" : "stopped");
}
