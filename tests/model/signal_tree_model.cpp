// The model of the signal tree: a set signal is never lost, taken twice, or missed by a search.
#include "model.hpp"

#include <coppice/signal/signal_tree.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;

constexpr const char* tree_header = "include/coppice/signal/signal_tree.hpp";
constexpr const char* directory_header = "include/coppice/signal/internal/directory.hpp";

// Leaves have two signals and nodes have two children, so Signals = 4, 8, and 16 make one, two, and
// three levels. Rounds times, each thread sets a signal after a plain write and then takes a
// signal.
template <int Threads, unsigned Signals, int Rounds, unsigned Apart>
struct set_and_select : model::test<set_and_select<Threads, Signals, Rounds, Apart>, Threads> {
    basic_signal_tree<2, 2> tree{Signals};
    plain<int> data[Signals];
    int sets[Signals]{};
    int takes[Signals]{};
    bool missed[Signals]{};  // the setter's own select() found nothing

    void before() {
        for (plain<int>& d : data) d.write(0);
    }
    void took(std::size_t signal) {
        model::require(data[signal].read() == 1, "a signal was taken before it was set");
        ++takes[signal];
    }
    void thread(unsigned index) {
        const unsigned mine = index * Apart % Signals;
        selection_bias bias = selection_bias::fair();
        for (int round = 0; round != Rounds; ++round) {
            if (round == 0) data[mine].write(1);
            if (tree.set(mine)) {
                ++sets[mine];
                missed[mine] = false;
            }
            if (const auto found = tree.select(bias)) {
                took(*found);
            } else {
                missed[mine] = true;
            }
        }
    }
    void after() {
        selection_bias bias = selection_bias::fair();
        while (const auto found = tree.select(bias)) {
            model::require(!missed[*found], "a signal stayed set and was not found");
            took(*found);
        }
        for (unsigned i = 0; i != Signals; ++i)
            model::require(sets[i] == takes[i], "a signal was lost or taken twice");
        model::require(tree.empty(), "an empty tree does not say so");
    }
};

// Two threads set the same signal and a third takes it. One set() returns true for each take, and
// the last taker sees the data of both setters.
struct coalesced : model::test<coalesced, 3> {
    basic_signal_tree<2, 2> tree{4};
    plain<int> data[2];
    int sets = 0;
    int takes = 0;
    int seen = 0;
    void before() {
        for (plain<int>& d : data) d.write(0);
    }
    void thread(unsigned index) {
        selection_bias bias = selection_bias::prefer(3);
        if (index < 2) {
            data[index].write(1);
            if (tree.set(0)) ++sets;
        } else if (tree.select(bias)) {
            ++takes;
        }
    }
    void after() {
        selection_bias bias = selection_bias::fair();
        while (tree.select(bias)) ++takes;
        model::require(sets == takes, "a coalesced signal was counted wrongly");
        model::require(tree.empty(), "an empty tree does not say so");
    }
};

// reset() races with select(): exactly one of them gets the signal.
struct reset_or_select : model::test<reset_or_select, 3> {
    basic_signal_tree<2, 2> tree{4};
    plain<int> data;
    int takes[2]{};
    void before() { data.write(0); }
    void thread(unsigned index) {
        if (index == 0) {
            data.write(1);
            tree.set(2);
        } else if (index == 1) {
            if (tree.reset(2)) takes[0] += data.read();
        } else {
            selection_bias bias = selection_bias::fair();
            if (tree.select(bias)) takes[1] += data.read();
        }
    }
    void after() {
        const int rest = tree.reset(2) ? 1 : 0;
        model::require(takes[0] + takes[1] + rest == 1, "a signal was lost or taken twice");
        model::require(tree.empty(), "an empty tree does not say so");
    }
};

// All signals of a leaf are set at once while another thread selects.
struct range : model::test<range, 2> {
    basic_signal_tree<2, 2> tree{8};
    plain<int> data;
    int takes = 0;
    void before() { data.write(0); }
    void thread(unsigned index) {
        if (index == 0) {
            data.write(1);
            tree.set_range(1, 6);
        } else {
            selection_bias bias = selection_bias::prefer(4);
            while (tree.select(bias)) takes += data.read();
        }
    }
    void after() {
        while (tree.select_first()) ++takes;
        model::require(takes == 5, "a signal of a range was lost or taken twice");
        model::require(tree.empty(), "an empty tree does not say so");
    }
};

// A signal is set, taken, set again, and searched for. The first setter was slow to raise its leaf;
// this must not make the second one believe that the marks stand.
struct set_again : model::test<set_again, 2> {
    basic_signal_tree<2, 2> tree{4};
    int sets = 0;
    int takes[2]{};
    bool missed = false;
    void thread(unsigned index) {
        if (index == 0) {
            for (int i = 0; i != 2; ++i) sets += tree.set(2) ? 1 : 0;
            missed = !tree.select_first();
            takes[0] += missed ? 0 : 1;
        } else {
            takes[1] += tree.select_first() ? 1 : 0;
        }
    }
    void after() {
        const bool left = tree.reset(2);
        model::require(!left || !missed, "a signal stayed set and was not found");
        model::require(sets == takes[0] + takes[1] + (left ? 1 : 0), "a signal was lost");
    }
};

using one_level = set_and_select<2, 4, 2, 1>;
using neighbors = set_and_select<2, 8, 2, 2>;
using far_apart = set_and_select<2, 8, 2, 3>;
using two_levels = set_and_select<3, 8, 1, 3>;
using three_levels = set_and_select<2, 16, 2, 4>;
using three_threads = set_and_select<3, 16, 2, 2>;

}  // namespace

int main() {
    model::report report("signal_tree");
    report.holds<one_level>("two threads, one level", {100'000});
    report.holds<neighbors>("two threads, two leaves of a node", {100'000});
    report.holds<far_apart>("two threads, leaves of two nodes", {100'000});
    report.holds<two_levels>("three threads, two levels", {100'000});
    report.holds<three_levels>("two threads, three levels", {100'000});
    report.holds<three_threads>("three threads, three levels", {100'000});
    report.holds<set_again>("a signal is set again", {100'000});
    report.holds<coalesced>("two sets of one signal", {50'000});
    report.holds<reset_or_select>("reset against select", {50'000});
    report.holds<range>("a range against a selector", {50'000});
    report.dies_weakened<one_level>(tree_header, "signal.hand_over");
    report.dies_weakened<one_level>(tree_header, "signal.look");
    report.dies_weakened<neighbors>(directory_header, "directory.filled", {200'000});
    report.dies_weakened<neighbors>(directory_header, "directory.doubt", {200'000});
    report.dies_weakened<neighbors>(directory_header, "directory.look", {200'000});
    report.dies_weakened<neighbors>(directory_header, "directory.note", {200'000});
    report.dies_planted<neighbors>("directory.keep_note", {200'000});
    report.dies_planted<set_again>("directory.note_late", {200'000});
    report.dies_planted<neighbors>("signal.raise_early", {200'000});
    report.dies_planted<three_levels>("directory.raise_one_level", {200'000});
    report.dies_planted<one_level>("directory.raise_and_leave", {200'000});
    report.dies_planted<two_levels>("directory.ignore_dispute", {200'000});
    report.dies_planted<far_apart>("directory.ignore_doubted", {400'000});
    return report.finish();
}
