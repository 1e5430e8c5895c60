// Futures on every scheduler. A loop's own thread may not block, so another thread waits there.
#include "compose.hpp"

#include <future>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;

template <class Place>
class future_in : public testing::Test {};
TYPED_TEST_SUITE(future_in, all_places);

void take(std::future<void> future, attempt& a, auto here) noexcept {
    try {
        future.get();
        a.end(ended_by::value, here());
    } catch (const std::system_error& e) {
        a.end(e.code(), here());
    }
}

TYPED_TEST(future_in, is_fulfilled_once) {
    std::optional<ex::counting_scope> scope(std::in_place);
    std::vector<std::pair<std::future<void>, attempt*>> elsewhere;
    const auto start = [&](TypeParam& place, attempt& a) {
        std::future<void> future = a.timer.wait_for(a.wait, bind_env(a.env(), use_future));
        if constexpr (TypeParam::blocks) {
            ex::spawn(ex::schedule(place.scheduler()) |
                          ex::then([&, living = mark(), f = std::move(future)]() mutable noexcept {
                              take(std::move(f), a, [&] { return place.is_here(); });
                          }),
                      scope->get_token());
        } else {
            elsewhere.emplace_back(std::move(future), &a);
        }
    };
    compose<TypeParam>(start, [&] {
        for (auto& [future, a] : elsewhere) {
            take(std::move(future), *a, [] { return true; });
        }
        elsewhere.clear();
        this_thread::sync_wait(scope->join());
        scope.emplace();
    });
}

}  // namespace
