// [stoptoken.concepts]: the types that are tokens and sources.
#include <coppice/stop/cause.hpp>
#include <coppice/stop/never.hpp>
#include <coppice/stop/subscription.hpp>
#include <coppice/stop_token.hpp>

#include <gtest/gtest.h>

namespace {

using namespace coppice;

template <class>
struct callback {
    callback(auto, auto) {}
};

struct never_by_member {
    template <class F>
    using callback_type = callback<F>;
    bool operator==(const never_by_member&) const = default;
    constexpr bool stop_possible() const noexcept { return false; }
    bool stop_requested() const noexcept { return false; }
};
struct perhaps_by_member : never_by_member {
    void* source = nullptr;
    bool operator==(const perhaps_by_member&) const = default;
    constexpr bool stop_possible() const noexcept { return source != nullptr; }
};
struct may_throw : never_by_member {
    bool operator==(const may_throw&) const = default;
    bool stop_requested() const { return false; }
};
struct without_callbacks {
    bool operator==(const without_callbacks&) const = default;
    bool stop_possible() const noexcept { return false; }
    bool stop_requested() const noexcept { return false; }
};

static_assert(unstoppable_token<never_stop_token> && unstoppable_token<never_by_member>);
static_assert(stoppable_token<perhaps_by_member> && !unstoppable_token<perhaps_by_member>);
static_assert(!stoppable_token<may_throw>);
static_assert(!stoppable_token<without_callbacks> && !stoppable_token<int>);

struct no_request {
    bool stop_possible() const noexcept { return true; }
    bool stop_requested() const noexcept { return false; }
};
static_assert(!stoppable_source<no_request>);

static_assert(stoppable_callback_for<void (*)(), inplace_stop_token>);
static_assert(!stoppable_callback_for<int, inplace_stop_token>);
static_assert(!stoppable_callback_for<void (*)(), inplace_stop_token, int>);

TEST(stop_concepts, are_static_assertions_in_this_file) {
    SUCCEED();
}

}  // namespace
