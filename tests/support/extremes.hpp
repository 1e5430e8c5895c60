// The extreme values of an option, for tests that try each.
#pragma once

#include <coppice/base/clock.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace coppice::test {

using namespace coppice::internal;

inline constexpr duration every_duration[] = {
    duration::min(), duration::min() + duration(1), duration(-1),   duration(0),
    duration(1),     duration::max() - duration(1), duration::max()};

inline constexpr std::uint64_t every_number[] = {
    0, 1, std::numeric_limits<std::uint64_t>::max() - 1, std::numeric_limits<std::uint64_t>::max()};

// Returns the message with which `make` refuses, or "" if it succeeds.
template <class Make>
std::string refusal_of(Make make) {
    try {
        make();
    } catch (const std::invalid_argument& why) {
        return why.what();
    }
    return "";
}

// Expects a refusal that names the option, its value, and what is allowed.
template <class Value>
void expect_refusal(const std::string& said, const std::string& name, Value value) {
    EXPECT_NE(said.find(name + " is " + std::to_string(value)), std::string::npos) << said;
    EXPECT_NE(said.find("; allowed: "), std::string::npos) << said;
}

}  // namespace coppice::test
