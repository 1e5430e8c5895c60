// Plan: the forms of spawn's arguments: an environment, an error handler, or both; in each kind of
// scope. Other tests of spawn are in scope_test.cpp.
#include <coppice/exec/just.hpp>
#include <coppice/exec/let_async_scope.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

// Records each error in words.
struct note {
    std::vector<std::string>* said;
    template <class Error>
    void operator()(Error&& error) const noexcept {
        said->push_back(probes::text(error));
    }
};

auto throwing() {
    return ex::just() | ex::then([] { throw std::runtime_error("x"); });
}

template <class Scope>
class exec_spawn_with_on_error : public testing::Test {
protected:
    ~exec_spawn_with_on_error() override { sync_wait(scope.join()); }
    Scope scope;
    std::vector<std::string> said;
};
using scopes = testing::Types<ex::simple_counting_scope, ex::counting_scope>;
TYPED_TEST_SUITE(exec_spawn_with_on_error, scopes);

TYPED_TEST(exec_spawn_with_on_error, handles_each_kind_of_error) {
    const auto token = this->scope.get_token();
    ex::spawn(throwing(), token, note{&this->said});
    ex::spawn(ex::just_error(std::make_error_code(std::errc::timed_out)), token, note{&this->said});
    ex::spawn(ex::just_error(7), token, note{&this->said});
    EXPECT_EQ(this->said,
              (std::vector<std::string>{
                  "exception x", std::make_error_code(std::errc::timed_out).message(), "7"}));
}

TYPED_TEST(exec_spawn_with_on_error, lambdas_and_functions_take_errors) {
    const auto token = this->scope.get_token();
    int count = 0;
    ex::spawn(ex::just_error(7), token, [&](auto&& error) noexcept { count += error; });
    ex::spawn(ex::just_error(7), token, [&](int error) noexcept { count += error; });
    ex::spawn(ex::just_error(7), token, [&](const int& error) { return count += error; });
    ex::spawn(ex::just_error(7), token, [&count](int error) mutable noexcept { count += error; });
    EXPECT_EQ(count, 28);
    static int seen;
    seen = 0;
    struct by_function {
        static void take(int error) noexcept { seen = error; }
    };
    ex::spawn(ex::just_error(7), token, by_function::take);
    EXPECT_EQ(seen, 7);
    const auto named = [&](int error) noexcept { count = error; };
    ex::spawn(ex::just_error(7), token, named);
    EXPECT_EQ(count, 7);
}

TYPED_TEST(exec_spawn_with_on_error, values_and_stops_are_no_errors) {
    const auto token = this->scope.get_token();
    bool ran = false;
    ex::spawn(ex::just() | ex::then([&]() noexcept { ran = true; }), token, note{&this->said});
    ex::spawn(ex::just_stopped(), token, note{&this->said});
    ex::spawn(ex::just_stopped(), token, [](auto&&) noexcept {});
    ex::spawn(ex::just_stopped(), token, [](int) noexcept {});
    EXPECT_TRUE(ran);
    EXPECT_TRUE(this->said.empty());
}

TYPED_TEST(exec_spawn_with_on_error, may_be_move_only_and_is_destroyed_with_the_operation) {
    probes::by_hand hand;
    auto kept = std::make_shared<int>(0);
    std::weak_ptr<int> watch = kept;
    ex::spawn(hand.get() | ex::then([](int) noexcept {}), this->scope.get_token(),
              [owned = std::make_unique<std::shared_ptr<int>>(std::move(kept)),
               this](int error) noexcept {
                  EXPECT_EQ(this->scope.outstanding(), 1u);  // it is still in the scope
                  **owned = error;
                  this->said.push_back(probes::text(**owned));
              });
    EXPECT_FALSE(watch.expired());
    hand.error(3);
    EXPECT_EQ(this->said, std::vector<std::string>{"3"});
    EXPECT_TRUE(watch.expired());
    EXPECT_EQ(this->scope.outstanding(), 0u);
}

TYPED_TEST(exec_spawn_with_on_error, is_not_called_for_a_closed_scope) {
    this->scope.close();
    ex::spawn(ex::just_error(7), this->scope.get_token(), note{&this->said});
    EXPECT_TRUE(this->said.empty());
}

struct get_number_t {
    template <class Env>
    int operator()(const Env& env) const noexcept {
        return env.query(*this);
    }
    static constexpr bool query(coppice::forwarding_query_t) noexcept { return true; }
};
inline constexpr get_number_t get_number{};

TYPED_TEST(exec_spawn_with_on_error, a_third_argument_that_takes_no_error_is_an_environment) {
    int number = 0;
    ex::spawn(ex::read_env(get_number) | ex::then([&](int n) noexcept { number = n; }),
              this->scope.get_token(), ex::prop(get_number, 7));
    EXPECT_EQ(number, 7);
    ex::spawn(ex::just(), this->scope.get_token(), ex::env<>());
}

TYPED_TEST(exec_spawn_with_on_error, may_be_followed_by_an_environment) {
    const auto token = this->scope.get_token();
    ex::spawn(ex::read_env(get_number) | ex::let_value([](int n) { return ex::just_error(n); }),
              token, note{&this->said}, ex::prop(get_number, 7));
    ex::spawn(ex::just_error(8), token, note{&this->said}, ex::env<>());
    ex::spawn(ex::just_error(9), token, note{&this->said}, ex::env<>(),
              std::source_location::current());
    EXPECT_EQ(this->said, (std::vector<std::string>{"7", "8", "9"}));
}

TYPED_TEST(exec_spawn_with_on_error, a_source_location_may_follow_an_environment_or_a_handler) {
    const auto here = std::source_location::current();
    ex::spawn(ex::just(), this->scope.get_token(), ex::env<>(), here);
    ex::spawn(ex::just_error(7), this->scope.get_token(), note{&this->said}, here);
    EXPECT_EQ(this->said, std::vector<std::string>{"7"});
}

TEST(exec_spawn_on_error, records_the_source_location_of_the_call) {
    ex::counting_scope scope(ex::record_outstanding);
    probes::by_hand hand;
    ex::spawn(hand.get() | ex::then([](int) noexcept {}), scope.get_token(), [](int) noexcept {});
    const unsigned line = std::source_location::current().line() - 1;
    unsigned seen = 0;
    scope.for_each_outstanding([&](const std::source_location& where) { seen = where.line(); });
    EXPECT_EQ(seen, line);
    hand.value(1);
    sync_wait(scope.join());
}

TEST(exec_spawn_on_error, ends_the_process_if_it_throws) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    ex::counting_scope scope;
    EXPECT_DEATH(ex::spawn(ex::just_error(7), scope.get_token(), [](int) { throw 1; }), "");
    sync_wait(scope.join());
}

TEST(exec_spawn_on_error, handles_errors_before_let_async_scope_does) {
    std::vector<std::string> said;
    const auto result = sync_wait(ex::just() | ex::let_async_scope([&](auto scope) {
                                      ex::spawn(throwing(), scope, note{&said});
                                      ex::spawn(ex::just_error(7), scope, [&](int error) noexcept {
                                          said.push_back(std::to_string(error));
                                      });
                                      ex::spawn(ex::just_error(8), scope, note{&said}, ex::env<>());
                                      return ex::just(9);
                                  }));
    EXPECT_EQ(std::get<0>(*result), 9);
    EXPECT_EQ(said, (std::vector<std::string>{"exception x", "7", "8"}));
    // Without on_error the errors go to the scope, also if an environment is given.
    const auto failing = [](auto... third) {
        return ex::just() | ex::let_async_scope([=](auto scope) {
                   ex::spawn(throwing(), scope, third...);
                   return ex::just(9);
               });
    };
    EXPECT_THROW(sync_wait(failing()), std::runtime_error);
    EXPECT_THROW(sync_wait(failing(ex::env<>())), std::runtime_error);
    EXPECT_THROW(sync_wait(failing(ex::prop(get_number, 7))), std::runtime_error);
}

}  // namespace
