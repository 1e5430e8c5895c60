// Senders on every scheduler: a value, an error, and a stop all arrive there.
#include "compose.hpp"

namespace {

using namespace coppice;
using namespace coppice::test;

template <class Place>
class sender_in : public testing::Test {};
TYPED_TEST_SUITE(sender_in, all_places);

TYPED_TEST(sender_in, completes_once_on_its_scheduler) {
    std::optional<ex::counting_scope> scope(std::in_place);
    const auto start = [&](TypeParam& place, attempt& a) {
        ex::spawn(
            ex::write_env(a.timer.wait_for(a.wait), a.env()) | ex::continues_on(place.scheduler()) |
                ex::then(
                    [&, living = mark()]() noexcept { a.end(ended_by::value, place.is_here()); }) |
                ex::upon_error([&](auto&&) noexcept { a.end(ended_by::error, place.is_here()); }) |
                ex::upon_stopped([&]() noexcept { a.end(ended_by::stop, place.is_here()); }),
            scope->get_token());
    };
    compose<TypeParam>(start, [&] {
        this_thread::sync_wait(scope->join());
        scope.emplace();
    });
}

}  // namespace
