// An operation that a work contract carries out, waited for in all five ways.
#include <coppice/coppice.hpp>

#include <cstdio>
#include <future>
#include <mutex>

using namespace coppice;
namespace ex = coppice::execution;

namespace {

// [station]
// Doubles numbers. Any thread may ask. Only the contract does the work, on a thread that executes
// its group.
class station {
public:
    struct request {
        request* next = nullptr;
        int number = 0;
        completion<int> done;
    };
    explicit station(work_contract_group& group)
        : contract_(group.create_contract([this] { serve(); })) {}

    void ask(request& r) noexcept {
        {
            const std::lock_guard lock(mutex_);
            requests_.push_back(&r);
        }
        contract_.schedule();  // sets one bit, if it is not set already
    }
    // Completes when the contract is gone. Awaitable, and a sender.
    auto close() noexcept {
        auto gone = contract_.completion();
        contract_.release();
        return gone;
    }

private:
    void serve() noexcept {
        while (request* const r = next()) {
            std::move(r->done)(no_error, r->number * 2);  // *r may be gone
        }
    }
    request* next() noexcept {
        const std::lock_guard lock(mutex_);
        return requests_.pop_front();
    }
    std::mutex mutex_;
    intrusive_queue<request, &request::next> requests_;
    work_contract contract_;
};
// [/station]

// [operation]
// The request lies in the initiation, and so in the waiter: nothing is allocated for it.
class doubling : station::request {
public:
    doubling(station& s, int n) noexcept : station_(&s) { number = n; }
    void operator()(completion<int> to) noexcept {
        done = to;
        station_->ask(*this);
    }

private:
    station* station_;
};

template <class Token = use_await_t>
auto double_it(station& s, int n, Token&& token = {}) noexcept(nothrow_token<Token>) {
    return completion_token_transform<void(std::error_code, int)>(static_cast<Token&&>(token),
                                                                  doubling(s, n));
}
// [/operation]

// [ways]
task<> in_a_task(station& s) {
    std::printf("await: %d\n", co_await double_it(s, 1));
}

void in_all_ways(station& s, contract_pool& workers) {
    this_thread::sync_wait(in_a_task(s));

    const auto [sum] = *this_thread::sync_wait(ex::when_all(double_it(s, 2), double_it(s, 3)) |
                                               ex::then([](int a, int b) { return a + b; }));
    std::printf("senders: %d\n", sum);

    std::promise<int> called;
    double_it(s, 4, [&](std::error_code, int result) {  // on a worker of the group
        // A callback may ask again: the contract, scheduled while it runs, then runs once more.
        double_it(s, result, [&](std::error_code, int twice) { called.set_value(twice); });
    });
    std::printf("callbacks: %d\n", called.get_future().get());

    std::printf("future: %d\n", double_it(s, 5, use_future).get());
    std::printf("block: %d\n", double_it(s, 6, block));

    // From a contract: its callback schedules another contract of the same group.
    std::promise<void> rung;
    work_contract bell = workers.group().create_contract([&] { rung.set_value(); });
    work_contract asker = workers.group().create_contract([&] {
        double_it(s, 7, [&](std::error_code, int result) {
            std::printf("from a contract: %d\n", result);
            bell.schedule();
        });
    });
    asker.schedule();
    rung.get_future().wait();

    this_thread::sync_wait(s.close());  // all callbacks have returned: what they refer to may end
    std::puts("the contract is gone");
}
// [/ways]

}  // namespace

int main() {
    contract_pool workers(2);
    station s(workers.group());
    in_all_ways(s, workers);
}
