// Tasks on every scheduler: after an await, each task continues or ends on its scheduler.
#include "compose.hpp"

#include <coppice/task.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;

template <class Place>
class await_in : public testing::Test {};
TYPED_TEST_SUITE(await_in, all_places);

template <class Place>
task<> waits(Place& place, attempt& a) {
    const mark living;
    EXPECT_TRUE(place.is_here());
    a.entered.store(true, relaxed);
    co_await ex::write_env(a.timer.wait_for(a.wait), ex::prop(ex::get_deadline, a.deadline));
    EXPECT_TRUE(place.is_here());
}

TYPED_TEST(await_in, continues_or_ends_once_on_its_scheduler) {
    std::optional<ex::counting_scope> scope(std::in_place);
    const auto start = [&](TypeParam& place, attempt& a) {
        ex::spawn(
            ex::write_env(ex::starts_on(place.scheduler(), waits(place, a)),
                          ex::prop(get_stop_token, a.stop.get_token())) |
                ex::then([&]() noexcept { a.end(ended_by::value, place.is_here()); }) |
                ex::upon_stopped([&]() noexcept {
                    // A task that was stopped before it began has run on no scheduler.
                    a.end(ended_by::stop, !a.entered.load(relaxed) || place.is_here());
                }) |
                ex::upon_error([&](auto&&) noexcept { a.end(ended_by::error, place.is_here()); }),
            scope->get_token());
    };
    compose<TypeParam>(start, [&] {
        this_thread::sync_wait(scope->join());  // destroys all that has ended, also the frames
        scope.emplace();
    });
}

}  // namespace
