// A scope that joins itself: in a task, and as a sender. Whatever happens in it, all spawned work
// has ended afterwards.
// [top]
#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

namespace ex = coppice::execution;
using coppice::task;
using coppice::this_thread::sync_wait;
// [/top]

task<void> count_words(const std::string& text, int& words) {
    for (const char c : text) words += c == ' ' ? 1 : 0;
    ++words;
    co_return;
}

// [scoped]
task<int> words_in(const std::string& first, const std::string& second) {
    int counts[2] = {};
    const bool complete = co_await ex::scoped([&](auto scope) -> task<bool> {
        ex::spawn(count_words(first, counts[0]), scope);
        if (second.empty()) throw std::invalid_argument("nothing to count");
        ex::spawn(count_words(second, counts[1]), scope);
        co_return true;
    });
    // Both have ended here, also after the throw: counts and the strings are no longer in use.
    co_return complete ? counts[0] + counts[1] : 0;
}
// [/scoped]

int main() {
    const std::string one = "a scope ends", two = "by itself", none;
    std::printf("%d words\n", std::get<0>(*sync_wait(words_in(one, two))));
    try {
        sync_wait(words_in(one, none));
    } catch (const std::invalid_argument& e) {
        std::printf("%s\n", e.what());
    }

    // [sender]
    // As a sender: the values live as long as the scope.
    auto total = ex::just(std::string("how many letters"), 0) |
                 ex::let_async_scope([](auto scope, std::string& text, int& letters) {
                     ex::spawn(ex::just() | ex::then([&] {
                                   for (const char c : text) letters += c == ' ' ? 0 : 1;
                               }),
                               scope);
                     return ex::just(&letters);
                 }) |
                 ex::then([](const int* letters) { return *letters; });
    // [/sender]
    std::printf("%d letters\n", std::get<0>(*sync_wait(std::move(total))));
}
