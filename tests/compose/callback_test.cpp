// Callbacks on every scheduler: each is called once, on its scheduler, whatever ends the operation.
#include "compose.hpp"

namespace {

using namespace coppice;
using namespace coppice::test;

template <class Place>
class callback_in : public testing::Test {};
TYPED_TEST_SUITE(callback_in, all_places);

TYPED_TEST(callback_in, is_called_once_on_its_scheduler) {
    compose<TypeParam>([](TypeParam& place, attempt& a) {
        a.timer.wait_for(
            a.wait,
            bind_env(ex::env(ex::prop(ex::get_scheduler, place.scheduler()), a.env()),
                     [&, living = mark()](std::error_code ec) { a.end(ec, place.is_here()); }));
    });
}

}  // namespace
