// The suite of what http::client refuses and what it stops, over each ring. Two files share it.
#pragma once

#include <coppice/io/context.hpp>

#include <gtest/gtest.h>

namespace coppice::test {

class client_safety : public testing::TestWithParam<io::backend> {};

}  // namespace coppice::test
