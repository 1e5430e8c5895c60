// An operation that a work contract carries out: from threads, contracts, and callbacks.
#include "compose.hpp"

#include <coppice/contract.hpp>
#include <coppice/io/internal/mailbox.hpp>
#include <coppice/task.hpp>

#include <future>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;

// Doubles numbers in its contract, except for requests that were stopped.
class station {
public:
    struct request {
        request* next = nullptr;
        int number = 0;
        completion<int> done;
    };
    explicit station(work_contract_group& group)
        : contract_(group.create_contract([this] { serve(); })) {}
    ~station() { close(); }

    void ask(request& r) noexcept {
        (void)requests_.push(r);
        contract_.schedule();
    }
    // When it returns, no callback is running.
    void close() {
        if (!contract_.valid()) return;
        auto gone = contract_.completion();
        contract_.release();
        this_thread::sync_wait(std::move(gone));
    }
    bool overlapped() const noexcept { return overlapped_.load(relaxed); }

private:
    void serve() noexcept {
        if (inside_.fetch_add(1, relaxed) != 0) overlapped_.store(true, relaxed);
        for (request* r = requests_.take(); r != nullptr;) {
            request* const next = r->next;
            completion<int> done = r->done;
            const bool given_up = execution::get_env(done).query(get_stop_token).stop_requested();
            const std::error_code ec =
                given_up ? std::make_error_code(std::errc::operation_canceled) : no_error;
            std::move(done)(ec, r->number * 2);
            r = next;
        }
        inside_.fetch_sub(1, relaxed);
    }
    io::internal::mailbox<request> requests_;
    atomic<int> inside_{0};
    atomic<bool> overlapped_{false};  // two runs at the same time
    work_contract contract_;
};

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
task<int> double_in_task(station& s, int n) {
    co_return co_await double_it(s, n);
}

TEST(contract_operation, every_way_gets_its_own_result_from_several_threads) {
    contract_pool workers(2);
    station s(workers.group());
    const auto ask_in_all_ways = [&](int first) {
        int right = 0;
        for (int n = first; n != first + 200; n += 5) {
            std::promise<int> called;
            std::future<int> result = called.get_future();
            double_it(s, n, [p = std::move(called)](std::error_code, int doubled) mutable {
                p.set_value(doubled);
            });
            right += result.get() == 2 * n;
            right += double_it(s, n + 1, use_future).get() == 2 * (n + 1);
            right += double_it(s, n + 2, block) == 2 * (n + 2);
            right += this_thread::sync_wait(double_it(s, n + 3)) == std::tuple(2 * (n + 3));
            right += this_thread::sync_wait(double_in_task(s, n + 4)) == std::tuple(2 * (n + 4));
        }
        EXPECT_EQ(right, 200);
    };
    std::thread other([&] { ask_in_all_ways(1000); });
    ask_in_all_ways(0);
    other.join();
    EXPECT_FALSE(s.overlapped());
}

// Each contract asks, and its callback schedules it again, until it has asked often enough.
TEST(contract_operation, callbacks_schedule_contracts_that_ask_again) {
    constexpr int contracts = 8;
    constexpr int times = 50;
    contract_pool workers(2);
    station s(workers.group());
    struct asker {
        int asked = 0;
        int sum = 0;
        work_contract contract;
    };
    std::vector<asker> askers(contracts);
    std::latch done(contracts);
    for (asker& a : askers) {
        a.contract = workers.group().create_contract([&] {
            double_it(s, ++a.asked, [&](std::error_code ec, int doubled) {
                EXPECT_FALSE(ec);
                a.sum += doubled;
                if (a.asked != times) {
                    a.contract.schedule();
                } else {
                    done.count_down();
                }
            });
        });
    }
    for (asker& a : askers) a.contract.schedule();
    done.wait();
    s.close();
    for (const asker& a : askers) EXPECT_EQ(a.sum, times * (times + 1));
}

TEST(contract_operation, a_stop_reaches_a_pending_request) {
    contract_pool workers(1);
    station s(workers.group());
    inplace_stop_source stop;
    stop.request_stop();
    std::error_code ec;
    double_it(s, 1, bind_env(ex::prop(get_stop_token, stop.get_token()), block[ec]));
    EXPECT_EQ(ec, std::errc::operation_canceled);
    bool stopped = false;
    this_thread::sync_wait(
        ex::write_env(double_it(s, 1), ex::prop(get_stop_token, stop.get_token())) |
        ex::then([](int) {}) | ex::upon_stopped([&] { stopped = true; }));
    EXPECT_TRUE(stopped);
}

TEST(contract_operation, a_tasks_await_returns_to_its_scheduler) {
    contract_pool workers(1);
    thread_pool home(1);
    station s(workers.group());
    const auto run = [](station& of, thread_pool& at) -> task<bool> {
        const int doubled = co_await double_it(of, 4);
        co_return doubled == 8 && at.is_current();
    };
    const auto result = this_thread::sync_wait(ex::starts_on(home.get_scheduler(), run(s, home)));
    EXPECT_EQ(result, std::tuple(true));
}

}  // namespace
