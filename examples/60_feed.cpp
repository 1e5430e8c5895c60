// A UDP feed: work contracts keep the books and hand what they find to tasks.
// [top]
#include <coppice/coppice.hpp>

#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace coppice;
namespace ex = coppice::execution;
// [/top]

namespace {

// With constructors: g++ 12 destroys aggregates twice in coroutines (docs/gcc12.md).
struct high {
    high() = default;
    high(std::string instrument, int most, io::endpoint from)
        : name(std::move(instrument)), price(most), source(from) {}
    std::string name;
    int price = 0;
    io::endpoint source;
};

// [inbox]
// From the contracts, which cannot wait, to one task, which can.
using inbox = unbounded_channel<high>;
// [/inbox]

// [book]
// One instrument. Its contract runs on one thread at a time, so `highest_` needs no lock. The queue
// between the loop and the contract has one.
class book {
public:
    book(work_contract_group& group, inbox& to, std::string name)
        : to_(to), name_(std::move(name)), contract_(group.create_contract([this] { run(); })) {}

    void tick(int price, io::endpoint source) {
        {
            const std::lock_guard lock(mutex_);
            ticks_.push_back({price, source});
        }
        contract_.schedule();  // sets one bit; no effect if it is already set
    }

private:
    struct tick_received {
        int price;
        io::endpoint source;
    };
    void run() {
        for (;;) {
            std::optional<tick_received> next;
            {
                const std::lock_guard lock(mutex_);
                if (ticks_.empty()) return;
                next = ticks_.front();
                ticks_.pop_front();
            }
            if (next->price <= highest_) continue;
            highest_ = next->price;
            to_.send(high(name_, highest_, next->source));
        }
    }

    inbox& to_;
    std::string name_;
    int highest_ = 0;  // used only by the contract
    std::mutex mutex_;
    std::deque<tick_received> ticks_;
    work_contract contract_;  // last, so that it ends before the rest is destroyed
};
// [/book]

// [receive]
// Reads the feed, one "NAME PRICE" per packet, and does nothing else on the loop.
task<> receive(io::udp::socket& socket, std::map<std::string, book, std::less<>>& books) {
    std::array<char, 64> packet;
    for (;;) {
        const auto got = co_await socket.receive_from(std::as_writable_bytes(std::span(packet)));
        const std::string_view text(packet.data(), got.size);
        const std::size_t space = text.find(' ');
        if (space == text.npos) continue;
        int price = 0;
        std::from_chars(text.data() + space + 1, text.data() + text.size(), price);
        const auto found = books.find(text.substr(0, space));
        if (found != books.end()) found->second.tick(price, got.from);
    }
}
// [/receive]

// [answer]
// The task at the other end: sends each new high back to the peer whose tick caused it.
task<> answer(io::udp::socket& socket, inbox& from) {
    for (;;) {
        const std::optional<high> found = co_await from.receive();
        if (!found) co_return;  // the inbox is closed, which does not happen here
        const std::string text = found->name + " high " + std::to_string(found->price);
        co_await socket.send_to(std::as_bytes(std::span(text)), found->source);
    }
}
// [/answer]

// The other side: sends ticks, collects four answers, and stands for a user pressing Ctrl-C.
task<> feed(io::udp::socket& socket, io::endpoint to, std::vector<std::string>& answers) {
    for (const char* const text : {"OAK 10", "ASH 7", "OAK 9", "ASH 8", "OAK 12", "ELM 1"}) {
        co_await socket.send_to(std::as_bytes(std::span(std::string_view(text))), to);
    }
    std::array<char, 64> packet;
    while (answers.size() != 4) {
        const auto got = co_await socket.receive_from(std::as_writable_bytes(std::span(packet)));
        answers.emplace_back(packet.data(), got.size);
    }
    std::raise(SIGINT);
}

task<> serve(io::context& loop, inbox& found, std::map<std::string, book, std::less<>>& books,
             std::vector<std::string>& answers) {
    io::udp::socket ours(loop, io::loopback(0));
    io::udp::socket theirs(loop, io::loopback(0));
    co_await ex::when_all(receive(ours, books), answer(ours, found),
                          feed(theirs, ours.local(), answers));
}

}  // namespace

int main() {
    inbox found;
    contract_pool workers(2);
    std::map<std::string, book, std::less<>> books;
    for (const char* const name : {"OAK", "ASH"}) {
        books.try_emplace(name, workers.group(), found, name);
    }
    std::vector<std::string> answers;
    const bool ended =
        io::run([&](io::context& loop) { return serve(loop, found, books, answers); },
                {.stop_on = {SIGINT, SIGTERM}});

    // Each instrument's answers are in order; the instruments are not in step with each other.
    for (const char* const name : {"ASH", "OAK"}) {
        for (const std::string& each : answers) {
            if (each.starts_with(name)) std::puts(each.c_str());
        }
    }
    std::puts(ended ? "ended" : "stopped");
}
