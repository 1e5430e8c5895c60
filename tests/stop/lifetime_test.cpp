// A source may be destroyed as soon as no callback is registered, even if a request_stop() that has
// run callbacks has not returned. Each source here has its own page, which is protected against any
// access once the source is destroyed.
#include "emulated.hpp"
#include "sanitizers.hpp"

#include <coppice/stop_token.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include <sys/mman.h>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;

constexpr int rounds = repeated(sanitized ? 300 : 3'000);

template <class Source>
class guarded_source {
public:
    guarded_source() {
        page_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page_ == MAP_FAILED) std::abort();
        source_ = ::new (page_) Source;
    }
    ~guarded_source() {
        destroy();
        ::munmap(page_, size);
    }
    Source& operator*() const noexcept { return *source_; }
    void destroy() noexcept {
        if (source_ == nullptr) return;
        std::destroy_at(source_);
        source_ = nullptr;
        ::mprotect(page_, size, PROT_NONE);
    }

private:
    static constexpr std::size_t size = 4096;
    static_assert(sizeof(Source) <= size);
    void* page_;
    Source* source_;
};

// Three tokens of one source, each for one callback at a time.
template <class Source, std::size_t... Index>
struct three {
    using source = Source;
    template <std::size_t I>
    static auto token(const Source& s) noexcept {
        if constexpr (sizeof...(Index) == 0) {
            return s.get_token();
        } else {
            return s.template get_token<std::array{Index...}[I]>();
        }
    }
};

struct call {
    std::function<void()>* what;
    void operator()() const { (*what)(); }
};

// A source and three callbacks, which run the functions that the test gives.
template <class Three>
struct stage {
    template <std::size_t I>
    using callback = stop_callback_for_t<
        decltype(Three::template token<I>(std::declval<typename Three::source&>())), call>;

    guarded_source<typename Three::source> source;
    std::array<std::function<void()>, 3> functions;
    std::array<int, 3> runs{};  // written by the running callback
    std::optional<callback<0>> first;
    std::optional<callback<1>> second;
    std::optional<callback<2>> third;
    atomic<int> taken{-1};  // the callback that runs first
    int first_run() const noexcept { return taken.load(acquire); }

    std::function<void(int)> on_later;  // runs in the other callbacks

    // on_first runs in the callback that the request runs first, and receives its number.
    void arm(std::function<void(int)> on_first) {
        for (int i = 0; i != 3; ++i) {
            functions[static_cast<std::size_t>(i)] = [this, i, on_first] {
                ++runs[static_cast<std::size_t>(i)];
                int none = -1;
                if (taken.compare_exchange_strong(none, i, acq_rel, acquire)) {
                    on_first(i);
                } else if (on_later) {
                    on_later(i);
                }
            };
        }
        first.emplace(Three::template token<0>(*source), call{&functions[0]});
        second.emplace(Three::template token<1>(*source), call{&functions[1]});
        third.emplace(Three::template token<2>(*source), call{&functions[2]});
    }
    void remove(int i) {
        if (i == 0) first.reset();
        if (i == 1) second.reset();
        if (i == 2) third.reset();
    }
    void remove_others(int i) {
        remove((i + 1) % 3);
        remove((i + 2) % 3);
    }
};

class signal_flag {
public:
    void raise() noexcept { up_.store(true, release); }
    void wait() const noexcept {
        while (!up_.load(acquire)) std::this_thread::yield();
    }

private:
    atomic<bool> up_{false};
};

template <class Three>
class stop_lifetime : public testing::Test {};
using sources = testing::Types<
    three<inplace_stop_source>, three<finite_inplace_stop_source<3>, 0, 1, 2>,
    three<finite_inplace_stop_source<5>, 4, 0, 2>,
    three<finite_inplace_stop_source<3, 64>, 0, 1, 2>,
    three<asymmetric_inplace_stop_source<3>, 0, 1, 2>, three<tolerant_single_stop_source>,
    three<tolerant_finite_stop_source<3>, 0, 1, 2>, three<tolerant_finite_stop_source<1>, 0, 0, 0>,
    three<tolerant_finite_stop_source<3>, 1, 1, 2>>;
TYPED_TEST_SUITE(stop_lifetime, sources);

// A callback removes itself. Other threads remove the other callbacks while its function goes on.
TYPED_TEST(stop_lifetime, the_source_may_be_destroyed_while_a_function_outlives_its_callback) {
    for (int round = 0; round != 20; ++round) {
        stage<TypeParam> s;
        signal_flag removed, destroyed;
        s.arm([&](int i) {
            s.remove(i);
            removed.raise();
            destroyed.wait();
        });
        std::thread owner([&] {
            removed.wait();
            s.remove_others(s.first_run());
            s.source.destroy();
            destroyed.raise();
        });
        EXPECT_TRUE((*s.source).request_stop());
        owner.join();
        EXPECT_EQ(s.runs[0] + s.runs[1] + s.runs[2], 1);
    }
}

// All of that on the requester's thread, in either order.
TYPED_TEST(stop_lifetime, a_function_removes_all_callbacks_and_destroys_the_source) {
    for (int round = 0; round != 4; ++round) {
        stage<TypeParam> s;
        s.arm([&, round](int i) {
            if (round % 2 == 0) s.remove(i);
            s.remove_others(i);
            if (round % 2 == 1) s.remove(i);
            if (round / 2 == 0) s.source.destroy();
        });
        EXPECT_TRUE((*s.source).request_stop());
        EXPECT_EQ(s.runs[0] + s.runs[1] + s.runs[2], 1);
    }
}

// A source dies in a callback that still exists, after the others.
TYPED_TEST(stop_lifetime, a_function_destroys_the_source_before_its_callback) {
    stage<TypeParam> s;
    s.arm([&](int i) {
        s.remove_others(i);
        s.source.destroy();
    });
    EXPECT_TRUE((*s.source).request_stop());
    EXPECT_EQ(s.runs[0] + s.runs[1] + s.runs[2], 1);
}

// Callbacks that are still registered when the function returns run once.
TYPED_TEST(stop_lifetime, the_request_runs_the_callbacks_that_remain) {
    for (int kept = 0; kept != 3; ++kept) {
        stage<TypeParam> s;
        signal_flag gone, removed;
        s.arm([&, kept](int i) {
            s.remove(i);
            gone.raise();
            if (kept != 2) removed.wait();
        });
        std::thread owner([&] {
            gone.wait();
            if (kept != 2) s.remove((s.first_run() + 1 + kept) % 3);
            removed.raise();
        });
        EXPECT_TRUE((*s.source).request_stop());
        owner.join();
        EXPECT_EQ(s.runs[0] + s.runs[1] + s.runs[2], kept == 2 ? 3 : 2);
        EXPECT_TRUE((*s.source).stop_requested());
    }
}

// Every callback removes itself, as the senders of a when_all do.
TYPED_TEST(stop_lifetime, all_callbacks_may_remove_themselves) {
    stage<TypeParam> s;
    const auto leave = [&](int i) {
        s.remove(i);
        if (s.runs[0] + s.runs[1] + s.runs[2] == 3) s.source.destroy();
    };
    s.arm(leave);
    s.on_later = leave;
    EXPECT_TRUE((*s.source).request_stop());
    EXPECT_EQ(s.runs[0], 1);
    EXPECT_EQ(s.runs[1], 1);
    EXPECT_EQ(s.runs[2], 1);
}

// The owner removes the other callbacks, then the running one, and destroys the source at once. The
// request is then between two callbacks, or on its way out.
TYPED_TEST(stop_lifetime, the_owner_may_remove_all_and_destroy_the_source_at_any_moment) {
    for (int round = 0; round != rounds; ++round) {
        stage<TypeParam> s;
        signal_flag runs;
        s.arm([&, round](int i) {
            if (round % 2 == 0) s.remove(i);
            runs.raise();
            for (int pause = 0; pause != round % 7; ++pause) spin_hint();
        });
        std::thread requester([&] { EXPECT_TRUE((*s.source).request_stop()); });
        runs.wait();
        const int i = s.first_run();
        s.remove_others(i);
        if (round % 2 != 0) s.remove(i);
        s.source.destroy();
        requester.join();
    }
}

// Two threads remove callbacks, and the last of them destroys the source.
TYPED_TEST(stop_lifetime, the_last_of_two_removing_threads_may_destroy_the_source) {
    for (int round = 0; round != rounds / 2; ++round) {
        stage<TypeParam> s;
        signal_flag runs;
        atomic<int> left{3};
        const auto leave = [&](int i) {
            s.remove(i);
            if (left.fetch_sub(1, acq_rel) == 1) s.source.destroy();
        };
        s.arm([&](int i) {
            leave(i);
            runs.raise();
        });
        std::thread requester([&] { EXPECT_TRUE((*s.source).request_stop()); });
        std::thread other([&] {
            runs.wait();
            leave((s.first_run() + 1) % 3);
        });
        runs.wait();
        leave((s.first_run() + 2) % 3);
        other.join();
        requester.join();
    }
}

// While the request is running, a callback is registered and removed at a slot whose callback is
// gone.
TYPED_TEST(stop_lifetime, registering_is_safe_while_callbacks_of_a_request_remove_themselves) {
    for (int round = 0; round != rounds / 2; ++round) {
        stage<TypeParam> s;
        signal_flag begin;
        s.arm([&](int i) {
            if (i == 0) s.remove(i);  // a thread removes the other one
        });
        s.remove(2);
        int late_runs = 0;
        std::function<void()> late = [&] { ++late_runs; };
        std::thread registering([&] {
            begin.raise();
            for (int i = 0; i != 3; ++i) {
                late_runs = 0;
                s.third.emplace(TypeParam::template token<2>(*s.source), call{&late});
                s.remove(2);
                EXPECT_LE(late_runs, 1);
            }
        });
        begin.wait();
        std::thread removing([&] { s.remove(1); });
        EXPECT_TRUE((*s.source).request_stop());
        removing.join();
        registering.join();
        if (s.first_run() != 0) s.remove(0);
        s.source.destroy();
    }
}

// A single source, and one slot of the others: the only callback removes itself.
template <class Source, class Token>
void the_only_callback_removes_itself(Token (*token_of)(const Source&)) {
    for (int round = 0; round != 20; ++round) {
        guarded_source<Source> source;
        std::optional<stop_callback_for_t<Token, call>> callback;
        signal_flag removed, destroyed;
        std::function<void()> function = [&] {
            callback.reset();
            removed.raise();
            destroyed.wait();
        };
        callback.emplace(token_of(*source), call{&function});
        std::thread owner([&] {
            removed.wait();
            source.destroy();
            destroyed.raise();
        });
        EXPECT_TRUE((*source).request_stop());
        owner.join();
    }
}
TEST(stop_lifetime_single, the_source_may_be_destroyed_while_its_function_runs) {
    the_only_callback_removes_itself<single_inplace_stop_source>(
        +[](const single_inplace_stop_source& s) { return s.get_token(); });
    the_only_callback_removes_itself<tolerant_single_stop_source>(
        +[](const tolerant_single_stop_source& s) { return s.get_token(); });
    the_only_callback_removes_itself<inplace_stop_source>(
        +[](const inplace_stop_source& s) { return s.get_token(); });
    the_only_callback_removes_itself<finite_inplace_stop_source<2>>(
        +[](const finite_inplace_stop_source<2>& s) { return s.get_token<1>(); });
    the_only_callback_removes_itself<asymmetric_inplace_stop_source<1>>(
        +[](const asymmetric_inplace_stop_source<1>& s) { return s.get_token<0>(); });
}

// The state of a shared source lives as long as a request runs.
TEST(stop_lifetime_shared, the_last_handle_may_be_dropped_while_a_function_outlives_its_callback) {
    std::optional<stop_source> source(std::in_place);
    std::optional<stop_callback<call>> first;
    std::optional<stop_callback<call>> second;
    signal_flag removed, destroyed;
    std::function<void()> function = [&] {
        first.reset();
        removed.raise();
        destroyed.wait();
    };
    std::function<void()> nothing = [] {};
    second.emplace(source->get_token(), call{&nothing});
    first.emplace(source->get_token(), call{&function});
    std::thread owner([&] {
        removed.wait();
        second.reset();
        source.reset();
        destroyed.raise();
    });
    EXPECT_TRUE(stop_source(*source).request_stop());
    owner.join();
}

}  // namespace
