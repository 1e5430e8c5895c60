// The model of way_back: the last remover destroys an in-place source while the request that has
// run its callbacks has not returned. Covers every in-place source.
#include "stop_model.hpp"

#include <coppice/stop/asymmetric.hpp>
#include <coppice/stop/finite.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/stop/single.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

// Three tokens of one source. Each thread below says which it uses.
template <class Source, std::size_t... Index>
struct three {
    using source = Source;
    static constexpr bool one_type = true;
    template <std::size_t I>
    static auto token(const Source& s) {
        if constexpr (sizeof...(Index) == 0) {
            return s.get_token();
        } else {
            return s.template get_token<std::array{Index...}[I]>();
        }
    }
};
using single = three<single_inplace_stop_source>;
using inplace = three<inplace_stop_source>;
using finite = three<finite_inplace_stop_source<3>, 0, 1, 2>;
using asymmetric = three<asymmetric_inplace_stop_source<3>, 0, 1, 2>;
using further = three<tolerant_single_stop_source>;
using mixed = three<tolerant_finite_stop_source<2>, 0, 1, 1>;
// As `further`, with callbacks of three types, so that each of them is a leader in the chain.
struct further_of_kinds : further {
    static constexpr bool one_type = false;
};

constexpr const char* slot = "include/coppice/stop/internal/slot.hpp";
constexpr const char* chain = "include/coppice/stop/internal/further.hpp";
constexpr const char* frame = "include/coppice/stop/internal/running.hpp";
constexpr const char* claims = "include/coppice/stop/internal/asymmetric_slots.hpp";

// A source and up to three callbacks. The last thread to leave destroys the source.
template <class Three, int Callbacks>
struct stage {
    template <std::size_t>
    struct call {
        stage* self;
        int i;
        void operator()() noexcept { self->ran(i); }
    };
    template <std::size_t I>
    using call_of = call<Three::one_type ? 0 : I>;
    template <std::size_t I>
    using callback = stop_callback_for_t<
        decltype(Three::template token<I>(std::declval<typename Three::source&>())), call_of<I>>;

    manual_lifetime<typename Three::source> storage;
    typename Three::source* source = nullptr;
    std::optional<callback<0>> first;
    std::optional<callback<1>> second;
    std::optional<callback<2>> third;
    atomic<int> left{Callbacks};
    int runs[3]{};
    int removes_itself = 7;  // bits: the callbacks that remove themselves in their functions
    int lingers = 0;         // how long their functions run after that

    void arm() {
        source = &storage.construct();
        // The request should run the first callback first, and an in-place source runs the newest
        // first.
        constexpr bool newest_first = std::is_same_v<typename Three::source, inplace_stop_source>;
        if (!newest_first) first.emplace(Three::template token<0>(*source), call_of<0>{this, 0});
        if (Callbacks > 2 && newest_first) add_third();
        if (Callbacks > 1) second.emplace(Three::template token<1>(*source), call_of<1>{this, 1});
        if (Callbacks > 2 && !newest_first) add_third();
        if (newest_first) first.emplace(Three::template token<0>(*source), call_of<0>{this, 0});
    }
    void add_third() { third.emplace(Three::template token<2>(*source), call_of<2>{this, 2}); }
    void ran(int i) noexcept {
        require(++runs[i] == 1, "ran twice");
        if ((removes_itself >> i & 1) == 0) return;
        leave(i);
        for (int k = 0; k != lingers; ++k) spin_hint();
    }
    void leave(int i) noexcept {
        if (i == 0) first.reset();
        if (i == 1) second.reset();
        if (i == 2) third.reset();
        if (left.fetch_sub(1, acq_rel) == 1) storage.destroy();
    }
};

// The first callback removes itself in its function, while another thread removes the second. The
// last of the two destroys the source.
template <class Three, int Lingers = 0>
struct two_leave : stop_test<two_leave<Three, Lingers>, 2> {
    stage<Three, 2> s;
    void before() {
        s.removes_itself = 1;
        s.lingers = Lingers;
        s.arm();
    }
    void run(unsigned index) {
        if (index == 0) {
            s.source->request_stop();
        } else {
            while (s.left.load(acquire) == 2) spin_hint();  // the first one is gone
            s.leave(1);
        }
    }
};

// The only callback removes itself, while another thread destroys the source.
template <class Three>
struct only_one_leaves : stop_test<only_one_leaves<Three>, 2> {
    stage<Three, 1> s;
    void before() {
        s.left.store(2, relaxed);
        s.lingers = 5;
        s.arm();
    }
    void run(unsigned index) {
        if (index == 0) {
            s.source->request_stop();
        } else {
            while (s.left.load(acquire) == 2) spin_hint();
            s.leave(3);
        }
    }
};

// Of three callbacks, two other threads remove one each, and the running one removes itself.
template <class Three>
struct three_leave : stop_test<three_leave<Three>, 3> {
    stage<Three, 3> s;
    void before() {
        s.removes_itself = 1;
        s.arm();
    }
    void run(unsigned index) {
        if (index == 0) {
            s.source->request_stop();
        } else {
            while (s.first) spin_hint();
            s.leave(static_cast<int>(index));
        }
    }
};

// The running callback does not remove itself: the owner does, after the other one.
template <class Three>
struct owner_leaves : stop_test<owner_leaves<Three>, 2> {
    stage<Three, 2> s;
    void before() {
        s.removes_itself = 0;
        s.arm();
    }
    void run(unsigned index) {
        if (index == 0) {
            s.source->request_stop();
        } else {
            while (s.runs[0] == 0) spin_hint();
            s.leave(1);
            s.leave(0);
        }
    }
};

// Of three callbacks, the first removes itself, the second is removed, and the third must run.
template <class Three>
struct one_stays : stop_test<one_stays<Three>, 2> {
    stage<Three, 3> s;
    void before() {
        s.removes_itself = 1 | 4;
        s.arm();
    }
    void run(unsigned index) {
        if (index == 0) {
            s.source->request_stop();
        } else {
            while (s.left.load(acquire) == 3) spin_hint();
            s.leave(1);
        }
    }
    void after() { require(s.runs[2] == 1, "a callback that stayed was not run"); }
};

// All callbacks remove themselves; the last one destroys the source in its function.
template <class Three>
struct all_remove_themselves : stop_test<all_remove_themselves<Three>, 2> {
    stage<Three, 2> s;
    atomic<int> over{0};
    void before() { s.arm(); }
    void run(unsigned index) {
        if (index == 0) {
            s.source->request_stop();
            require(s.runs[0] + s.runs[1] == 2, "a callback was not run");
            over.store(1, release);
        } else {
            while (over.load(acquire) == 0) spin_hint();
        }
    }
};

// A third thread registers and removes at the second token while the request runs.
template <class Three>
struct one_comes : stop_test<one_comes<Three>, 3> {
    stage<Three, 3> s;
    void before() {
        s.removes_itself = 1;
        s.arm();
        s.second.reset();
    }
    void run(unsigned index) {
        if (index == 0) {
            s.source->request_stop();
        } else if (index == 1) {
            s.second.emplace(Three::template token<1>(*s.source),
                             typename stage<Three, 3>::template call_of<1>{&s, 1});
            s.leave(1);
        } else {
            s.leave(2);
        }
    }
};

// Further callbacks of a source are registered and removed at one token.
struct further_come_and_go : stop_test<further_come_and_go, 3> {
    tolerant_single_stop_source source;
    plain<int> data[2];
    void run(unsigned index) {
        if (index == 2) {
            source.request_stop();
            return;
        }
        int ran = 0;
        auto f = [&] {
            data[index].write(1);
            ++ran;
        };
        {
            single_inplace_stop_callback<decltype(f)> callback(source.get_token(), f);
        }
        data[index].write(2);
        require(ran <= 1, "ran twice");
    }
};

// A further callback that stays registered runs.
struct further_is_not_lost : stop_test<further_is_not_lost, 2> {
    tolerant_single_stop_source source;
    plain<int> data;
    void run(unsigned index) {
        if (index == 0) {
            source.request_stop();
            return;
        }
        atomic<int> ran{0};
        {
            auto nothing = [] {};
            auto f = [&] {
                data.write(1);
                ran.store(1, relaxed);
            };
            single_inplace_stop_callback<decltype(nothing)> slot(source.get_token(), nothing);
            single_inplace_stop_callback<decltype(f)> callback(source.get_token(), f);
            while (ran.load(relaxed) == 0) spin_hint();
        }
        data.write(2);
    }
};

// Further callbacks of two kinds are registered in turn, so that each kind has a leader and
// followers. Two threads remove some of them while a third stops the source. The remaining ones
// run, each by the function of its own kind.
template <int... Removed>
struct kinds_leave : stop_test<kinds_leave<Removed...>, 3> {
    static constexpr int count = 7;
    template <int Kind>
    struct call {
        kinds_leave* self;
        int i;
        void operator()() noexcept {
            require(i % 2 == Kind, "the function of another kind was run");
            self->data[i].write(2);
            require(++self->runs[i] == 1, "ran twice");
        }
    };
    tolerant_single_stop_source source;
    std::optional<single_inplace_stop_callback<call<0>>> even[count];
    std::optional<single_inplace_stop_callback<call<1>>> odd[count];
    plain<int> data[count];
    int runs[count]{};

    void before() {
        for (int i = 0; i != count; ++i) {
            data[i].write(1);
            if (i % 2 == 0) even[i].emplace(source.get_token(), call<0>{this, i});
            if (i % 2 == 1) odd[i].emplace(source.get_token(), call<1>{this, i});
        }
    }
    void leave(int i) {
        even[i].reset();
        odd[i].reset();
        data[i].write(3);
    }
    // Thread 0 removes the first half of the callbacks that leave, the second thread the other
    // half.
    void run(unsigned index) {
        if (index == 2) {
            source.request_stop();
            return;
        }
        constexpr int all[] = {Removed...};
        constexpr unsigned half = sizeof...(Removed) / 2;
        for (unsigned k = index * half; k != (index + 1) * half; ++k) leave(all[k]);
    }
    void after() {
        for (int i = 0; i != count; ++i) {
            const bool stayed = ((i != Removed) && ...);
            if (stayed) require(runs[i] == 1, "a callback that stayed was not run");
            leave(i);
        }
    }
};
// Of the even ones, 0 is in the slot, 6 leads, 4 is the first follower, and 2 is the last one. Of
// the odd ones, which come later in the chain, 5 leads, 3 is the first follower, and 1 is the last
// one.
using leaders_leave = kinds_leave<6, 4, 5, 3>;
using followers_leave = kinds_leave<4, 6, 3, 5>;
using last_ones_leave = kinds_leave<2, 4, 1, 3>;
using all_but_one_leave = kinds_leave<6, 2, 1, 0, 5, 4>;

// Of three followers, the middle one leaves before its neighbors.
struct middle_leaves : stop_test<middle_leaves, 2> {
    tolerant_single_stop_source source;
    int runs = 0;
    struct call {
        middle_leaves* self;
        void operator()() noexcept { ++self->runs; }
    };
    std::optional<single_inplace_stop_callback<call>> callbacks[5];
    void before() {
        for (auto& each : callbacks) each.emplace(source.get_token(), call{this});
    }
    void run(unsigned index) {
        if (index == 0) {
            callbacks[2].reset();
            callbacks[1].reset();
            callbacks[3].reset();
        } else {
            source.request_stop();
        }
    }
    void after() {
        for (auto& each : callbacks) each.reset();
        require(runs >= 2, "a callback that stayed was not run");
    }
};

// There are many shapes here, on many sources.
constexpr effort some{.iterations = 50'000};

template <class Three>
void holds_on(report& report, const char* name) {
    const auto said = [name](const char* claim) { return std::string(name) + ": " + claim; };
    report.holds<only_one_leaves<Three>>(said("the only one leaves").c_str(), some);
    report.holds<two_leave<Three>>(said("the last of two destroys the source").c_str(), some);
    report.holds<two_leave<Three, 5>>(said("the same, with a long function").c_str(), some);
    report.holds<three_leave<Three>>(said("the last of three destroys the source").c_str(), some);
    report.holds<owner_leaves<Three>>(said("the owner removes all and destroys it").c_str(), some);
    report.holds<one_stays<Three>>(said("a callback that stays is run").c_str(), some);
    report.holds<all_remove_themselves<Three>>(said("all remove themselves").c_str(),
                                               {.iterations = 5'000});
    report.holds<one_comes<Three>>(said("a callback is registered meanwhile").c_str(), some);
}

}  // namespace

int main() {
    report report("way_back");
    report.holds<only_one_leaves<single>>("single: the only one leaves", some);
    holds_on<inplace>(report, "inplace");
    holds_on<finite>(report, "finite");
    holds_on<asymmetric>(report, "asymmetric");
    holds_on<further>(report, "further");
    holds_on<further_of_kinds>(report, "further of kinds");
    holds_on<mixed>(report, "mixed");
    report.holds<further_come_and_go>("further callbacks come and go", some);
    report.holds<further_is_not_lost>("a further callback is not lost", some);
    report.holds<leaders_leave>("leaders of both kinds leave", some);
    report.holds<followers_leave>("first followers of both kinds leave", some);
    report.holds<last_ones_leave>("last followers of both kinds leave", some);
    report.holds<all_but_one_leave>("all callbacks except one leave", some);
    report.holds<middle_leaves>("a follower in the middle leaves", some);

    report.dies_planted<owner_leaves<inplace>>("stop.finish_before_claim", far);
    report.dies_planted<owner_leaves<finite>>("stop.finish_before_claim", far);
    report.dies_planted<only_one_leaves<finite>>("stop.return_to_nothing", far);
    report.dies_planted<only_one_leaves<inplace>>("stop.return_to_nothing", far);
    report.dies_planted<only_one_leaves<finite>>("stop.touch_dead_source", far);
    report.dies_planted<only_one_leaves<asymmetric>>("stop.touch_dead_source", far);
    report.dies_planted<two_leave<inplace, 5>>("stop.come_back_anyway", far);
    report.dies_planted<two_leave<finite, 5>>("stop.come_back_anyway", far);
    report.dies_planted<two_leave<inplace>>("stop.no_farewell", far);
    report.dies_planted<two_leave<finite>>("stop.no_farewell", far);
    report.dies_planted<two_leave<further>>("stop.no_farewell", far);
    report.dies_planted<two_leave<finite>>("stop.do_not_await_decision", far);
    report.dies_planted<one_stays<finite>>("stop.drop_watch", far);
    report.dies_planted<three_leave<finite>>("stop.pass_leaving", far);
    report.dies_planted<further_is_not_lost>("further.no_second_look", far);
    report.dies_planted<further_come_and_go>("further.do_not_wait", far);
    report.dies_planted<further_come_and_go>("further.stay_linked", far);
    report.dies_planted<three_leave<further>>("further.drop_mark", far);
    report.dies_planted<three_leave<further_of_kinds>>("further.drop_mark", far);
    report.dies_planted<leaders_leave>("further.one_kind", far);
    report.dies_planted<leaders_leave>("further.lose_followers", far);
    report.dies_planted<followers_leave>("further.lose_way_on", far);
    report.dies_planted<last_ones_leave>("further.keep_last", far);
    report.dies_planted<middle_leaves>("further.keep_back_link", far);
    report.dies_weakened<two_leave<finite>>(frame, "stop.way", far);
    report.dies_weakened<three_leave<finite>>(slot, "stop.watch", far);
    report.dies_weakened<two_leave<finite>>(slot, "stop.left", far);
    report.dies_weakened<three_leave<asymmetric>>(claims, "stop.left", far);
    report.dies_weakened<three_leave<asymmetric>>(claims, "stop.watch", far);
    report.dies_weakened<two_leave<further>>(chain, "stop.left", far);
    report.dies_weakened<further_is_not_lost>(chain, "stop.flag", far);
    report.dies_weakened<further_come_and_go>(chain, "stop.done", far);
    return report.finish();
}
