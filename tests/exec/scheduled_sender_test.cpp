// Plan: scheduled_sender: the operation is the item that the resource queues.
#include <gtest/gtest.h>
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/exec/scheduled_sender.hpp>
#include <coppice/exec/then.hpp>

#include <vector>

#include "coroutine.hpp"
#include "probes.hpp"

namespace {

namespace ex = coppice::execution;

struct item {
    using function = void(item*) noexcept;
    explicit item(function* f) noexcept : run(f) {}
    function* run;
};
class queue {
public:
    using scheduler_concept = ex::scheduler_tag;
    using item_type = item;
    explicit queue(std::vector<item*>& items) noexcept : items_(&items) {}
    void enqueue(item& i) const { items_->push_back(&i); }
    ex::scheduled_sender<queue> schedule() const noexcept {
        return ex::scheduled_sender<queue>(*this);
    }
    bool operator==(const queue&) const = default;

private:
    std::vector<item*>* items_;
};

TEST(scheduled_sender, runs_when_its_item_does_and_says_where) {
    static_assert(ex::scheduler<queue>);
    std::vector<item*> items;
    const queue sch(items);
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(ex::schedule(sch))), sch);
    probes::record r;
    auto op = ex::connect(ex::schedule(sch), probes::receiver<>(r));
    ex::start(op);
    ASSERT_EQ(items.size(), 1u);
    EXPECT_EQ(r.said(), "");
    items[0]->run(items[0]);
    EXPECT_EQ(r.said(), "value()");
}

TEST(scheduled_sender, a_requested_stop_ends_it_when_its_item_runs) {
    std::vector<item*> items;
    coppice::inplace_stop_source source;
    probes::record r;
    auto op =
        ex::connect(ex::schedule(queue(items)), probes::receiver(r, probes::stop_env(source)));
    ex::start(op);
    source.request_stop();
    items[0]->run(items[0]);
    EXPECT_EQ(r.said(), "stopped");
}

TEST(scheduled_sender, is_awaited_without_a_receiver_between) {
    std::vector<item*> items;
    auto make = [](std::vector<item*>* i) -> probes::coroutine<int> {
        co_await ex::schedule(queue(*i));
        co_return 5;
    };
    probes::record r;
    auto op = ex::connect(make(&items), probes::receiver<>(r));
    ex::start(op);
    EXPECT_EQ(r.said(), "");
    items[0]->run(items[0]);
    EXPECT_EQ(r.said(), "value(5)");
}

}  // namespace
