// Channels under storms: what was sent is received or kept, once.
#include "channel_storm.hpp"

namespace {

using namespace coppice::test;

template <class Kind>
class channels_in_a_storm : public testing::Test {};
using kinds = testing::Types<channel_storm<0>, channel_storm<1>, channel_storm<3>, unbounded_storm,
                             spsc_storm<1>, spsc_storm<3>, spsc_storm<64>, oneshot_storm,
                             broadcast_storm<true>, broadcast_storm<false>, watch_storm>;
TYPED_TEST_SUITE(channels_in_a_storm, kinds);

TYPED_TEST(channels_in_a_storm, two_threads_conserve_items) {
    storm_of<TypeParam>::run(2);
}
TYPED_TEST(channels_in_a_storm, four_threads_conserve_items) {
    storm_of<TypeParam>::run(4);
}

}  // namespace
