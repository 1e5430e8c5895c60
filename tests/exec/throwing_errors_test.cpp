// Plan: errors whose copies throw, at the first, second, and later copies. The exception of the
// copy becomes the error, in each algorithm that stores or converts errors.
#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include <gtest/gtest.h>

#include <exception>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

struct bad_copy {};
// Allows some copies and moves, and throws bad_copy from the next one on.
class fragile {
public:
    fragile() = default;
    fragile(const fragile&) { count(); }
    fragile(fragile&&) noexcept(false) { count(); }
    fragile& operator=(fragile&&) = delete;
    static inline int allowed = 0;

private:
    static void count() {
        if (allowed == 0) throw bad_copy();
        --allowed;
    }
};

// Sends a fragile error as Error says: fragile, fragile&, const fragile&.
template <class Error>
struct fails_with {
    using sender_concept = ex::sender_tag;
    template <class, class...>
    static consteval auto get_completion_signatures() noexcept {
        return ex::completion_signatures<ex::set_value_t(), ex::set_error_t(Error)>();
    }
    template <class Rcvr>
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        explicit operation(Rcvr r) noexcept : rcvr(std::move(r)) {}
        operation(operation&&) = delete;
        void start() & noexcept { ex::set_error(std::move(rcvr), static_cast<Error&&>(error)); }
        Rcvr rcvr;
        std::remove_cvref_t<Error> error;
    };
    template <ex::receiver Rcvr>
    operation<Rcvr> connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(std::move(rcvr));
    }
};

// Returns how `run` ends with `allowed` copies: "bad_copy", "fragile", or something else.
template <class Run>
const char* ends_by(int allowed, Run run) {
    fragile::allowed = allowed;
    try {
        run();
    } catch (const bad_copy&) {
        return "bad_copy";
    } catch (const fragile&) {
        return "fragile";
    }
    return "no error";
}
// With enough allowed copies, the error itself arrives; with fewer, the exception of the copy does.
template <class Run>
void delivers_the_copys_exception(const char* what, Run run) {
    constexpr int enough = 20;
    EXPECT_STREQ(ends_by(0, run), "bad_copy") << what;
    EXPECT_STREQ(ends_by(enough, run), "fragile") << what;
    const int needed = enough - fragile::allowed;
    for (int n = 1; n < enough; ++n) {
        EXPECT_STREQ(ends_by(n, run), n < needed ? "bad_copy" : "fragile") << what << n;
    }
}

template <class Error>
coppice::task<void> awaits() {
    co_await fails_with<Error>();
}

template <class Error>
void every_algorithm() {
    using fails = fails_with<Error>;
    const auto check = [](const char* what, auto make) {
        delivers_the_copys_exception(what, [&] { sync_wait(make()); });
    };
    check("sync_wait", [] { return fails(); });
    check("co_await", [] { return awaits<Error>(); });
    check("when_all", [] { return ex::when_all(fails(), ex::just()); });
    check("when_any", [] { return ex::when_any(fails()); });
    check("split", [] { return ex::split(fails()); });
    check("continues_on", [] { return ex::continues_on(fails(), ex::inline_scheduler()); });
    check("let_async_scope, nested", [] {
        return ex::let_async_scope(ex::just(), [](auto scope) { ex::spawn(fails(), scope); });
    });
    check("let_async_scope, the body",
          [] { return ex::let_async_scope(ex::just(), [](auto) { return fails(); }); });
    check("scoped", [] { return ex::scoped([](auto) { return awaits<Error>(); }); });
    check("spawn_future",
          [] { return ex::scoped([](auto scope) { return ex::spawn_future(fails(), scope); }); });
}

TEST(throwing_errors, an_exception_of_copying_an_error_is_delivered) {
    every_algorithm<fragile>();
    every_algorithm<fragile&>();
    every_algorithm<const fragile&>();
}

// A task that names the error's type sends the error as it is.
struct names_fragile {
    using error_types =
        ex::completion_signatures<ex::set_error_t(fragile), ex::set_error_t(std::exception_ptr)>;
};
coppice::task<void, names_fragile> yields_error() {
    co_yield coppice::with_error(fragile());
}
coppice::task<fragile> returns_value() {
    co_return fragile();
}

TEST(throwing_errors, an_exception_of_moving_a_tasks_error_is_delivered) {
    delivers_the_copys_exception("task", [] { sync_wait(yields_error()); });
    delivers_the_copys_exception("split task", [] { sync_wait(ex::split(yields_error())); });
}

// An error that can be moved but not copied is thrown as it is, too.
struct moved_only {
    moved_only() = default;
    moved_only(moved_only&&) = default;
    moved_only& operator=(moved_only&&) = delete;
};
struct names_moved_only {
    using error_types = ex::completion_signatures<ex::set_error_t(moved_only)>;
};
coppice::task<void, names_moved_only> yields_moved_only() {
    co_yield coppice::with_error(moved_only());
}
coppice::task<void> awaits_moved_only() {
    co_await yields_moved_only();
}

TEST(throwing_errors, a_move_only_error_is_thrown_as_it_is) {
    using fails = fails_with<moved_only>;
    EXPECT_THROW(sync_wait(fails()), moved_only);
    EXPECT_THROW(sync_wait(awaits<moved_only>()), moved_only);
    EXPECT_THROW(sync_wait(yields_moved_only()), moved_only);
    EXPECT_THROW(sync_wait(awaits_moved_only()), moved_only);
    EXPECT_THROW(sync_wait(ex::when_all(fails(), ex::just())), moved_only);
    EXPECT_THROW(
        sync_wait(ex::let_async_scope(ex::just(), [](auto scope) { ex::spawn(fails(), scope); })),
        moved_only);
}

TEST(throwing_errors, an_exception_of_moving_a_tasks_value_is_delivered) {
    EXPECT_STREQ(ends_by(20, [] { sync_wait(returns_value()); }), "no error");
    const int needed = 20 - fragile::allowed;
    for (int n = 0; n != needed; ++n) {
        EXPECT_STREQ(ends_by(n, [] { sync_wait(returns_value()); }), "bad_copy") << n;
    }
}

}  // namespace
