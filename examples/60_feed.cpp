// A UDP feed: work contracts keep the books, and hand what they find to tasks.
// [top]
#include <coppice/coppice.hpp>

#include <array>
#include <charconv>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
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
// What passes from contracts to a task: any thread puts, one task takes. Taking is an operation as
// those of the library are: awaited, given a callback, or blocked on.
class inbox {
public:
    template <class Token = use_await_t>
    auto next(Token&& token = {}) noexcept(nothrow_token<Token>) {
        return completion_token_transform<void(std::error_code, high)>(static_cast<Token&&>(token),
                                                                       taking(*this));
    }
    void put(high item) {
        std::unique_lock lock(mutex_);
        if (!waiting_) return items_.push_back(std::move(item));
        completion<high> taker = *std::exchange(waiting_, std::nullopt);
        lock.unlock();
        std::move(taker)(no_error, std::move(item));  // the task goes on, on its own scheduler
    }

private:
    class taking {
    public:
        explicit taking(inbox& from) noexcept : from_(&from) {}
        void operator()(completion<high> done) noexcept { from_->take(done); }

    private:
        inbox* from_;
    };
    void take(completion<high> done) noexcept {
        std::unique_lock lock(mutex_);
        if (items_.empty()) {
            waiting_ = done;
            return;
        }
        high item = std::move(items_.front());
        items_.pop_front();
        lock.unlock();
        std::move(done)(no_error, std::move(item));
    }

    std::mutex mutex_;
    std::deque<high> items_;
    std::optional<completion<high>> waiting_;
};
// [/inbox]

// [book]
// One instrument. Its contract runs on one thread at a time, whichever that is, so that `highest_`
// needs no lock; the queue between the loop and the contract has one.
class book {
public:
    book(work_contract_group& group, inbox& to, std::string name)
        : to_(to), name_(std::move(name)), contract_(group.create_contract([this] { run(); })) {}

    void tick(int price, io::endpoint source) {
        {
            const std::lock_guard lock(mutex_);
            ticks_.push_back({price, source});
        }
        contract_.schedule();  // one bit; pending already is as good
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
            to_.put({name_, highest_, next->source});
        }
    }

    inbox& to_;
    std::string name_;
    int highest_ = 0;  // the contract's
    std::mutex mutex_;
    std::deque<tick_received> ticks_;
    work_contract contract_;  // last: nothing runs once the rest goes
};
// [/book]

// [receive]
// Reads the feed on the loop and does nothing else there: "NAME PRICE", until "end".
task<> receive(io::udp::socket& socket, std::map<std::string, book, std::less<>>& books) {
    std::array<char, 64> packet;
    for (;;) {
        const auto got = co_await socket.receive_from(std::as_writable_bytes(std::span(packet)));
        const std::string_view text(packet.data(), got.size);
        const std::size_t space = text.find(' ');
        if (space == text.npos) co_return;
        int price = 0;
        std::from_chars(text.data() + space + 1, text.data() + text.size(), price);
        const auto found = books.find(text.substr(0, space));
        if (found != books.end()) found->second.tick(price, got.from);
    }
}
// [/receive]

// [answer]
// The task at the other end: one after the other, back to whom they came from.
task<> answer(io::udp::socket& socket, inbox& from) {
    for (int i = 0; i != 4; ++i) {
        const high found = co_await from.next();
        const std::string text = found.name + " high " + std::to_string(found.price);
        co_await socket.send_to(std::as_bytes(std::span(text)), found.source);
    }
}
// [/answer]

// The other side: sends ticks, and collects answers until it has seen so many.
task<std::vector<std::string>> feed(io::udp::socket& socket, io::endpoint to) {
    for (const char* const text : {"OAK 10", "ASH 7", "OAK 9", "ASH 8", "OAK 12", "ELM 1"}) {
        co_await socket.send_to(std::as_bytes(std::span(std::string_view(text))), to);
    }
    std::vector<std::string> answers;
    std::array<char, 64> packet;
    while (answers.size() != 4) {
        const auto got = co_await socket.receive_from(std::as_writable_bytes(std::span(packet)));
        answers.emplace_back(packet.data(), got.size);
    }
    co_await socket.send_to(std::as_bytes(std::span(std::string_view("end"))), to);
    co_return answers;
}

}  // namespace

int main() {
    io::context loop;
    io::udp::socket ours(loop, io::loopback(0));
    io::udp::socket theirs(loop, io::loopback(0));
    inbox found;
    blocking_work_contract_group group(16);
    std::map<std::string, book, std::less<>> books;
    for (const char* const name : {"OAK", "ASH"}) {
        books.try_emplace(name, group, found, name);
    }
    inplace_stop_source done;
    std::vector<std::thread> workers;
    for (int i = 0; i != 2; ++i) {
        workers.emplace_back([&] {
            while (group.execute_next_contract(done.get_token())) {
            }
        });
    }
    std::optional<io::context::work_guard> guard(loop);
    std::thread network([&] { loop.run(); });

    auto both = this_thread::sync_wait(ex::starts_on(
        loop.get_scheduler(),
        ex::when_all(receive(ours, books), answer(ours, found), feed(theirs, ours.local()))));
    done.request_stop();
    for (std::thread& worker : workers) worker.join();
    guard.reset();
    network.join();

    // Each instrument's answers are in order; the instruments are not in step with each other.
    std::vector<std::string> said = std::get<0>(std::move(*both));
    for (const char* const name : {"ASH", "OAK"}) {
        for (const std::string& each : said) {
            if (each.starts_with(name)) std::puts(each.c_str());
        }
    }
}
