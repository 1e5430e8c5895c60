// exec/internal/scheduled_sender.hpp: [exec.sched] on a resource that queues intrusive items.
#include <coppice/exec/internal/scheduled_sender.hpp>

#include <coppice/base/intrusive.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/stop_token.hpp>

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;

// A resource that one thread fills and drains.
struct manual_resource {
    struct item : coppice::immovable {
        explicit item(void (*function)(item*) noexcept) noexcept : run(function) {}
        void (*run)(item*) noexcept;
        item* next = nullptr;
    };
    struct scheduler {
        using scheduler_concept = ex::scheduler_tag;
        using item_type = item;
        manual_resource* owner;
        explicit scheduler(manual_resource& o) noexcept : owner(&o) {}
        ex::internal::scheduled_sender<scheduler> schedule() const noexcept {
            return ex::internal::scheduled_sender<scheduler>(*this);
        }
        void enqueue(item& i) const noexcept { owner->items.push_back(&i); }
        ex::forward_progress_guarantee query(ex::get_forward_progress_guarantee_t) const noexcept {
            return ex::forward_progress_guarantee::weakly_parallel;
        }
        friend bool operator==(const scheduler&, const scheduler&) noexcept = default;
    };
    void drain() {
        while (item* const i = items.pop_front()) i->run(i);
    }
    coppice::intrusive_queue<item, &item::next> items;
};

// Counts the completions of an operation.
struct outcome {
    int values = 0;
    int stops = 0;
};
template <class Token>
struct counting_receiver {
    using receiver_concept = ex::receiver_tag;
    outcome* seen;
    Token token;
    counting_receiver(outcome& o, Token t) noexcept : seen(&o), token(t) {}
    void set_value() && noexcept { ++seen->values; }
    void set_stopped() && noexcept { ++seen->stops; }
    auto get_env() const noexcept { return ex::prop(coppice::get_stop_token, token); }
};

TEST(scheduled_sender, models_the_schedulers_concepts) {
    static_assert(ex::scheduler<manual_resource::scheduler>);
    using sender = ex::internal::scheduled_sender<manual_resource::scheduler>;
    static_assert(ex::sender_in<sender, ex::env<>>);
    static_assert(std::same_as<ex::completion_signatures_of_t<sender, ex::env<>>,
                               ex::completion_signatures<ex::set_value_t()>>,
                  "a receiver that cannot be stopped gets a value only");
}

TEST(scheduled_sender, completes_only_when_the_resource_runs_its_item) {
    manual_resource resource;
    outcome seen;
    auto op = ex::connect(ex::schedule(manual_resource::scheduler(resource)),
                          counting_receiver(seen, coppice::never_stop_token()));
    ex::start(op);
    EXPECT_EQ(seen.values, 0);
    resource.drain();
    EXPECT_EQ(seen.values, 1);
}

TEST(scheduled_sender, a_stop_before_its_turn_stops_it) {
    manual_resource resource;
    coppice::inplace_stop_source source;
    outcome seen;
    auto op = ex::connect(ex::schedule(manual_resource::scheduler(resource)),
                          counting_receiver(seen, source.get_token()));
    ex::start(op);
    source.request_stop();
    resource.drain();
    EXPECT_EQ(seen.values, 0);
    EXPECT_EQ(seen.stops, 1);
}

TEST(scheduled_sender, says_where_it_completes) {
    manual_resource resource;
    const manual_resource::scheduler sch(resource);
    const auto sender = ex::schedule(sch);
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(sender)), sch);
}

}  // namespace
