// The internal namespaces: a room's can see coppice's, and neither reaches programs.
#include <coppice/base/internal/namespaces.hpp>

#include <coppice/base/clock.hpp>

#include <gtest/gtest.h>

#include <type_traits>

namespace coppice::io {

using in_the_room = internal::duration;

}  // namespace coppice::io

namespace {

static_assert(std::is_same_v<coppice::io::in_the_room, coppice::internal::duration>);
static_assert(std::is_same_v<coppice::http::internal::duration, coppice::internal::duration>);
static_assert(std::is_same_v<coppice::execution::internal::duration, coppice::internal::duration>);

struct duration {};
using namespace coppice;
using namespace coppice::internal;

TEST(internal, leaves_common_names_to_the_program) {
    EXPECT_TRUE((std::is_same_v<decltype(duration()), ::duration>));
}

}  // namespace
