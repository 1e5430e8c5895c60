// Blocking on every scheduler: each call returns once, on the thread that it blocked.
#include "compose.hpp"

namespace {

using namespace coppice;
using namespace coppice::test;

template <class Place>
class block_in : public testing::Test {};
TYPED_TEST_SUITE(block_in, all_places);

// On the timers' own loop, each wait runs turns of the loop, in which the next wait blocks.
TYPED_TEST(block_in, returns_on_the_thread_that_it_blocked) {
    std::optional<ex::counting_scope> scope(std::in_place);
    const auto start = [&](TypeParam& place, attempt& a) {
        ex::spawn(ex::schedule(place.scheduler()) | ex::then([&, living = mark()]() noexcept {
                      const std::thread::id before = std::this_thread::get_id();
                      std::error_code ec;
                      a.timer.wait_for(a.wait, bind_env(a.env(), block[ec]));
                      a.end(ec, place.is_here() && std::this_thread::get_id() == before);
                  }),
                  scope->get_token());
    };
    compose<TypeParam>(start, [&] {
        this_thread::sync_wait(scope->join());
        scope.emplace();
    });
}

}  // namespace
