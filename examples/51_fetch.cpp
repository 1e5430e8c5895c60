// Fetches URLs, at most eight at once, each with a time limit, retries, and redirects. Ctrl-C stops
// them all, and the summary says how many had been fetched.
//
//   example_51_fetch http://example.org/ http://example.com/a http://example.com/b
//
// Without arguments it fetches from a server of its own (51_fetch_trial.hpp).
// [top]
#include <coppice/coppice.hpp>

#include "51_fetch_trial.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

using namespace coppice;
using namespace std::chrono_literals;
// [/top]

namespace {

// [fetch]
struct progress {
    std::size_t all, ended = 0, answered = 0;
};

// Fetches one URL and prints the result.
task<> fetch(http::client& client, const std::string& url, progress& p) {
    const auto began = std::chrono::steady_clock::now();
    try {
        const http::client_response answer = co_await client.get(url);
        const http::url from(answer.url());  // after all redirects
        std::printf("%d, %zu bytes from %s\n", answer.status(), answer.body().size(),
                    std::string(from.path()).c_str());
        ++p.answered;
    } catch (const std::system_error& error) {
        std::printf("%s\n", error.what());
    }
    const auto passed = (std::chrono::steady_clock::now() - began) / 1ms;
    std::fprintf(stderr, "%zu of %zu: %s, %ld ms\n", ++p.ended, p.all, url.c_str(), long(passed));
}

task<> fetch_all(io::context& loop, std::span<const std::string> urls, std::size_t at_once_max,
                 progress& p) {
    http::client client(loop, {.total = 5s,  // for each URL
                               .connections_per_host_max = 4,
                               .redirects_max = 5,
                               .retries = 2});
    co_await for_each_bounded(urls, at_once_max,
                              [&](const std::string& url) { return fetch(client, url, p); });
}
// [/fetch]

}  // namespace

// [main]
int main(int count, char** arguments) {
    std::vector<std::string> urls(arguments + 1, arguments + count);
    std::optional<fetch_trial> trial;
    if (urls.empty()) urls = trial.emplace().urls();
    const std::size_t at_once_max = trial ? 1 : 8;  // one at a time fixes the order of the lines
    progress p{urls.size()};
    const bool done =
        io::run([&](io::context& loop) { return fetch_all(loop, urls, at_once_max, p); },
                {.stop_on = {SIGINT, SIGTERM}});
    std::printf("%s: %zu of %zu answered\n", done ? "done" : "stopped", p.answered, p.all);
}
// [/main]
