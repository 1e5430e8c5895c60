// io/initiate.hpp: requests of a loop as operations with any token. The loop here is only a list.
#include <coppice/execution.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/stop_token.hpp>

#include "detached.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;

// Completes its requests when it is told to; a request for 0 ends inside its start.
class counting_request;
struct list_loop {
    execution::inline_scheduler get_scheduler() const noexcept { return {}; }
    std::vector<counting_request*> pending;
    void run();
    void drive(block_latch& done) noexcept;
};

class counting_request {
public:
    static constexpr const char* name = "count";
    using value_type = std::unique_ptr<int>;
    struct arguments {
        list_loop* owner;
        int value;
    };
    explicit counting_request(const arguments& a) noexcept : arguments_(a) {}
    bool begin(inplace_stop_token stop, time_point deadline) noexcept {
        error_ = stop.stop_requested() || deadline != time_point::max();
        if (arguments_.value == 0 || error_) return true;
        arguments_.owner->pending.push_back(this);
        return false;
    }
    virtual void completed() noexcept = 0;
    std::error_code error() const noexcept {
        return std::make_error_code(error_ ? std::errc::operation_canceled : std::errc());
    }
    bool stopped() const noexcept { return error_; }
    value_type take() { return std::make_unique<int>(arguments_.value); }

protected:
    list_loop& owner() const noexcept { return *arguments_.owner; }
    ~counting_request() = default;

private:
    arguments arguments_;
    bool error_ = false;
};

void list_loop::run() {
    const std::vector<counting_request*> now = std::move(pending);
    pending.clear();
    for (counting_request* const request : now) request->completed();
}

void list_loop::drive(block_latch& done) noexcept {
    while (!done.is_set()) run();
}

template <class Token = use_await_t>
auto count(list_loop& loop, int value, Token&& token = {}) {
    return io::initiate<counting_request>({&loop, value}, static_cast<Token&&>(token));
}

TEST(initiate, a_request_serves_every_token) {
    list_loop loop;
    int sum = 0;
    auto wait = [&]() -> test::detached {
        sum += *co_await count(loop, 1);
        sum += *co_await count(loop, 0);
    };
    wait();
    count(loop, 10, [&](std::error_code, std::unique_ptr<int> n) { sum += *n; });
    std::future<std::unique_ptr<int>> future = count(loop, 100, use_future);
    loop.run();
    sum += *future.get();
    EXPECT_EQ(*count(loop, 0, block), 0);
    EXPECT_EQ(*count(loop, 5, block), 5);
    EXPECT_EQ(sum, 111);
}

TEST(initiate, a_stop_token_and_a_deadline_reach_the_request) {
    list_loop loop;
    inplace_stop_source source;
    source.request_stop();
    std::error_code ec;
    count(loop, 1, bind_env(execution::prop(get_stop_token, source.get_token()), block[ec]));
    EXPECT_EQ(ec, std::errc::operation_canceled);
    const execution::instant past(1);
    EXPECT_FALSE(this_thread::sync_wait(
        execution::write_env(count(loop, 1), execution::prop(execution::get_deadline, past))));
}

TEST(initiate, a_message_names_the_request) {
    list_loop loop;
    const execution::instant past(1);
    try {
        count(loop, 1, bind_env(execution::prop(execution::get_deadline, past), block));
        FAIL();
    } catch (const std::system_error& e) {
        EXPECT_NE(std::string_view(e.what()).find("count"), std::string_view::npos);
    }
}

}  // namespace
