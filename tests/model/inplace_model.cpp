// The model of the in-place source: a locked list.
#include "stop_model.hpp"

#include <coppice/stop/inplace.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

struct inplace {
    using source = inplace_stop_source;
    using token = inplace_stop_token;
    static token token_of(const source& s) { return s.get_token(); }
};

constexpr const char* list = "include/coppice/stop/internal/list.hpp";
constexpr const char* own = "include/coppice/stop/inplace.hpp";
constexpr const char* waiting = "include/coppice/stop/internal/sleepers.hpp";

// Two threads with two callbacks each, while a third requests. Each removal finds its own node.
struct many_callbacks : stop_test<many_callbacks, 3> {
    inplace_stop_source source;
    plain<int> data[2];
    void run(unsigned index) {
        if (index == 2) {
            require(source.request_stop(), "the only request lost");
            return;
        }
        int ran[2]{};
        {
            auto f = [&] {
                data[index].write(1);
                ++ran[0];
            };
            auto g = [&] { ++ran[1]; };
            using first = inplace_stop_callback<decltype(f)>;
            std::optional<first> removed_first(std::in_place, source.get_token(), f);
            inplace_stop_callback<decltype(g)> removed_last(source.get_token(), g);
            removed_first.reset();
            data[index].write(2);
        }
        require(ran[0] <= 1 && ran[1] <= 1, "ran twice");
    }
};

// While one callback runs, another one is removed; that removal must not wait.
struct no_wait_for_others : stop_test<no_wait_for_others, 2> {
    inplace_stop_source source;
    atomic<int> runs{0};
    atomic<int> other_gone{0};
    void run(unsigned index) {
        if (index == 0) {
            auto f = [&] {
                runs.store(1, release);
                while (other_gone.load(acquire) == 0) spin_hint();
            };
            inplace_stop_callback<decltype(f)> callback(source.get_token(), f);
            source.request_stop();
        } else {
            auto f = [] {};
            std::optional<inplace_stop_callback<decltype(f)>> callback;
            callback.emplace(source.get_token(), f);
            while (runs.load(acquire) == 0) spin_hint();
            callback.reset();
            other_gone.store(1, release);
        }
    }
};

// The newer of two callbacks removes itself, and its memory is gone when its function returns.
struct newer_removes_itself : stop_test<newer_removes_itself, 2> {
    struct removes_itself {
        newer_removes_itself* self;
        void operator()() noexcept { self->newer.destroy(); }
    };
    struct nothing {
        void operator()() noexcept {}
    };
    inplace_stop_source source;
    manual_lifetime<inplace_stop_callback<removes_itself>> newer;
    atomic<int> over{0};
    void run(unsigned index) {
        if (index == 0) {
            inplace_stop_callback<nothing> older(source.get_token(), nothing());
            newer.construct(source.get_token(), removes_itself{this});
            source.request_stop();
            over.store(1, release);
        } else {
            while (over.load(acquire) == 0) spin_hint();
        }
    }
};

// There are two callbacks; the newer one is taken while the older one is still in the list. A
// second thread removes the older one. The newer callback sees that and frees everything from
// inside.
struct last_one_frees : stop_test<last_one_frees, 2> {
    struct operation {
        struct free_all {
            operation* self;
            void operator()() noexcept {
                operation* const op = self;
                while (op->older_gone.load(acquire) == 0) spin_hint();
                op->newer.reset();
                std::destroy_at(op);
            }
        };
        struct nothing {
            void operator()() noexcept {}
        };
        inplace_stop_source source;
        std::optional<inplace_stop_callback<nothing>> older;
        std::optional<inplace_stop_callback<free_all>> newer;
        atomic<int> older_gone{0};
    };
    manual_lifetime<operation> storage;
    operation* op = nullptr;
    void before() {
        op = &storage.construct();
        op->older.emplace(op->source.get_token(), operation::nothing());
        op->newer.emplace(op->source.get_token(), operation::free_all{op});
    }
    void run(unsigned index) {
        if (index == 0) {
            op->source.request_stop();
        } else {
            op->older.reset();
            op->older_gone.store(1, release);
        }
    }
};

// The lock alone, with holders that are preempted, so that other threads sleep.
struct list_lock : stop_test<list_lock, 3> {
    stop_list list;
    plain<int> inside;
    int sum = 0;
    void before() { inside.write(0); }
    void run(unsigned) {
        const stop_list::flags bits = list.lock();
        inside.write(inside.read() + 1);
        spin_hint();
        spin_hint();
        list.unlock(bits);
    }
    void after() { require(inside.read() == 3, "the lock let two threads in"); }
};

}  // namespace

int main() {
    report report("inplace");
    report.holds<register_and_remove<inplace>>("register and remove against request", far);
    report.holds<no_stop_is_lost<inplace>>("no stop is lost", far);
    report.holds<late_callback<inplace>>("a late callback runs in its constructor", far);
    report.holds<racing_requests<inplace>>("one of racing requests wins", far);
    report.holds<many_callbacks>("each removal finds its own callback", far);
    report.holds<remove_while_running<inplace>>("removal waits for a running callback", far);
    report.holds<no_wait_for_others>("removal does not wait for another callback", far);
    report.holds<self_removal<inplace>>("a callback removes itself", far);
    report.holds<newer_removes_itself>("the newer of two removes itself", far);
    report.holds<source_dies_inside<inplace>>("a callback destroys the source", far);
    report.holds<forward_and_destroy<inplace, inplace>>("the last completion frees everything",
                                                        far);
    report.holds<forward_and_destroy<inplace, inplace, false>>(
        "the same when only the stop completes", far);
    report.holds<last_one_frees>("a callback frees the source after the others have left", far);
    report.holds<list_lock>("the lock excludes, and wakes sleeping threads", far);

    report.dies_weakened<many_callbacks>(list, "stop.list", far);
    report.dies_weakened<register_and_remove<inplace>>(list, "stop.requested", far);
    report.dies_weakened<remove_while_running<inplace>>(list, "stop.done", far);
    report.dies_weakened<no_stop_is_lost<inplace>>(own, "stop.done", far);
    report.dies_weakened<remove_while_running<inplace>>(waiting, "stop.done", far);
    report.dies_weakened<remove_while_running<inplace>>(waiting, "stop.sleep", far);
    report.dies_weakened<list_lock>(waiting, "stop.sleep", far);
    report.dies_planted<list_lock>("stop.forget_wake", far);
    report.dies_planted<remove_while_running<inplace>>("stop.do_not_wait", far);
    report.dies_planted<self_removal<inplace>>("stop.wait_for_oneself", far);
    report.dies_planted<newer_removes_itself>("stop.touch_dead_callback", far);
    report.dies_planted<source_dies_inside<inplace>>("stop.touch_dead_source", far);
    return report.finish();
}
