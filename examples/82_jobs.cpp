// Runs jobs that wait for each other, a few at once, each with a time limit and retries.
#include <coppice/coppice.hpp>

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
using namespace std::chrono_literals;
namespace ex = coppice::execution;
constexpr int at_once_max = 2, tries_max = 3;

struct job {
    std::function<task<>()> command;         // throws if it fails; if it is long, polls for stops
    std::chrono::milliseconds limit = 1min;  // for each try
    std::size_t waits_for = 0;               // how many jobs must be done first
    std::vector<job*> dependents = {};
    std::string outcome = "not run";
};

// Reads lines "c: a b": c waits for a and b. Returns the jobs that wait for none.
std::vector<job*> read(std::map<std::string, job>& all, const std::string& text) {
    const auto find = [&](const std::string& name) -> job& {
        return all.contains(name) ? all[name] : throw std::invalid_argument("no job " + name);
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
    std::vector<job*> done = ready;  // Kahn's algorithm: it never gets past a cycle
    std::map<const job*, std::size_t> met;
    for (std::size_t i = 0; i != done.size(); ++i)
        for (job* next : done[i]->dependents)
            if (++met[next] == next->waits_for) done.push_back(next);
    for (const auto& [name, each] : all)
        if (met[&each] != each.waits_for) throw std::invalid_argument("a cycle holds up " + name);
    return ready;
}

// Runs on the pool, whose size is the limit. A timeout starts its clock last: hence a second hop.
task<> try_once(const job& mine, thread_pool& pool) {
    co_await ex::timeout(ex::starts_on(pool.get_scheduler(), mine.command()), mine.limit);
}

task<> run(job& mine, thread_pool& pool, auto scope) {
    mine.outcome = "stopped";  // unless a line below changes it
    for (int tries = 1; mine.outcome == "stopped"; ++tries) {
        try {
            co_await ex::starts_on(pool.get_scheduler(), try_once(mine, pool));
            mine.outcome = "done, tries: " + std::to_string(tries);
        } catch (const std::exception& error) {
            if (tries == tries_max) mine.outcome = std::string("failed: ") + error.what();
        }
    }
    for (job* next : mine.dependents)
        if (mine.outcome.starts_with("done") && --next->waits_for == 0)
            ex::spawn(run(*next, pool, scope), scope);
}

void run_all(std::map<std::string, job> all, const std::string& text) try {
    thread_pool pool(at_once_max);
    const auto start = [&, ready = read(all, text)](auto scope) {
        for (job* each : ready) ex::spawn(run(*each, pool, scope), scope);
    };
    io::run(ex::scoped(start), {.stop_on = {SIGINT, SIGTERM}});
    for (const auto& [name, each] : all)
        std::printf("%s: %s\n", name.c_str(), each.outcome.c_str());
} catch (const std::exception& error) {
    std::printf("refused: %s\n", error.what());
}

int main() {
    const auto work = []() -> task<> { co_return; };
    const auto hang = []() -> task<> {
        const inplace_stop_token stop = co_await ex::read_env(get_stop_token);
        while (!stop.stop_requested()) std::this_thread::yield();
        co_await ex::just_stopped();
    };
    const auto press_ctrl_c = [&] { return std::raise(SIGINT), hang(); };
    const auto flaky = [&, tries = 0]() mutable {
        return ++tries < 3 ? throw std::runtime_error("no connection") : work();
    };
    run_all({{"fetch", {flaky}}, {"compile", {work}}, {"test", {hang, 5ms}}, {"publish", {work}}},
            "compile: fetch\ntest: compile\npublish: test compile\n");
    run_all({{"serve", {press_ctrl_c}}, {"report", {work}}}, "report: serve\n");
    run_all({{"hen", {work}}, {"egg", {work}}}, "hen: egg\negg: hen\n");
}
