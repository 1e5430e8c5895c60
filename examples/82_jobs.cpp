// Runs jobs that wait for each other: some at once, each with a deadline and retries; then reports.
#include <coppice/coppice.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace coppice;
namespace ex = coppice::execution;
constexpr int at_once_max = 2, tries_max = 3;

struct job {
    std::function<void(inplace_stop_token)> command;  // throws if it fails; ends early at a stop
    std::chrono::milliseconds limit{60'000};          // for each try
    std::size_t waits_for = 0;                        // jobs that are not done
    std::vector<job*> dependents = {};
    std::string outcome = "not run";
};
using jobs = std::map<std::string, job>;

// Reads lines "c: a b": c waits for a and b. Returns the jobs that wait for none.
std::vector<job*> read(jobs& all, const std::string& text) {
    const auto find = [&](const std::string& name) -> job& {
        if (!all.contains(name)) throw std::invalid_argument("there is no job " + name);
        return all[name];
    };
    std::istringstream lines(text);
    for (std::string name, needs; std::getline(lines, name, ':') && std::getline(lines, needs);) {
        job& waiting = find(name);
        std::istringstream names(needs);
        for (; names >> name; ++waiting.waits_for) find(name).dependents.push_back(&waiting);
    }
    std::vector<job*> ready;
    for (auto& [name, each] : all)
        if (each.waits_for == 0) ready.push_back(&each);
    std::vector<job*> done = ready;  // Kahn's algorithm: what it does not reach, a cycle holds up
    std::map<const job*, std::size_t> met;
    for (std::size_t i = 0; i != done.size(); ++i)
        for (job* next : done[i]->dependents)
            if (++met[next] == next->waits_for) done.push_back(next);
    for (const auto& [name, each] : all)
        if (met[&each] != each.waits_for) throw std::invalid_argument("a cycle holds up " + name);
    return ready;
}

// Runs on the pool. The deadline is counted from here.
task<> try_once(const job& mine) {
    const auto command = ex::read_env(get_stop_token) | ex::then(std::cref(mine.command));
    co_await ex::timeout(command, mine.limit);
}

// A command holds a thread, so the pool's size is the limit. All else happens on the loop,
// unlocked.
task<> run(job& mine, thread_pool& pool, auto scope) {
    mine.outcome = "stopped";  // unless the rest is reached
    for (int tries = 1; mine.outcome == "stopped"; ++tries) {
        try {
            co_await ex::starts_on(pool.get_scheduler(), try_once(mine));
            mine.outcome = "done, tries: " + std::to_string(tries);
        } catch (const std::exception& error) {
            if (tries == tries_max) mine.outcome = std::string("failed: ") + error.what();
        }
    }
    if (mine.outcome.starts_with("failed")) co_return;
    for (job* next : mine.dependents)
        if (--next->waits_for == 0) ex::spawn(run(*next, pool, scope), scope);
}

void run_all(jobs all, const std::string& text) try {
    thread_pool pool(at_once_max);
    const auto start = [&, ready = read(all, text)](auto scope) {
        for (job* each : ready) ex::spawn(run(*each, pool, scope), scope);
    };
    std::puts(io::run(ex::scoped(start), {.stop_on = {SIGINT, SIGTERM}}) ? "ended" : "stopped");
    for (const auto& [name, each] : all)
        std::printf("  %s: %s\n", name.c_str(), each.outcome.c_str());
} catch (const std::exception& error) {
    std::printf("refused: %s\n", error.what());
}

int main() {
    const auto work = [](inplace_stop_token) {};
    const auto hang = [](inplace_stop_token stop) {
        while (!stop.stop_requested()) std::this_thread::yield();
    };
    const auto press_ctrl_c = [](inplace_stop_token) { std::raise(SIGINT); };
    const auto flaky = [tries = 0](inplace_stop_token) mutable {
        if (++tries < 3) throw std::runtime_error("no connection");
    };
    run_all({{"fetch", {flaky}},
             {"compile", {work}},
             {"test", {hang, std::chrono::milliseconds(5)}},
             {"publish", {work}}},
            "compile: fetch\ntest: compile\npublish: test compile\n");
    run_all({{"serve", {press_ctrl_c}}, {"report", {work}}}, "report: serve\n");
    run_all({{"hen", {work}}, {"egg", {work}}}, "hen: egg\negg: hen\n");
}
