// The contracts of the models: a board whose runs and releases are counted.
#pragma once

#include "model.hpp"

#include <coppice/contract/internal/board.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::protocol_model {

using namespace coppice::internal;

inline constexpr const char* board_header = "include/coppice/contract/internal/board.hpp";
inline constexpr const char* life_header = "include/coppice/contract/internal/life.hpp";

// How far the thread with the most steps has come. The other threads wait for a stage that the
// checker chooses, at their start and wherever a visit begins or ends; otherwise their few steps
// would always come first. Relaxed, so that nothing depends on its order.
struct stages {
    atomic<unsigned> reached{0};
    unsigned last = 0;  // 0: no thread waits
    void wait() {
        if (last == 0) return;
        const unsigned chosen = rl::rand(last + 1);
        while (reached.load(relaxed) < chosen) spin_hint();
    }
};

class staged_life : public life_word {
public:
    stages* visitors = nullptr;  // those of the second thread
    entered enter(std::uint64_t generation) { return staged(life_word::enter(generation)); }
    entered begin_release(std::uint64_t generation) {
        return staged(life_word::begin_release(generation));
    }
    left leave() { return staged(life_word::leave()); }

private:
    template <class Result>
    Result staged(Result result) {
        if (visitors != nullptr && rl::ctx().threadx_->index_ == 1) visitors->wait();
        return result;
    }
};

// A contract of the model. Its plain fields are data races if two threads run it at once.
struct slot {
    staged_life life;
    plain<int> owner;  // 1 + the generation of the contract in the slot
    plain<int> runs;
};
using board_type = contract_board<slot, 2>;

struct handle {
    std::size_t index = 0;
    std::uint64_t generation = 0;
};

template <class Derived, int Threads>
struct board_test : model::test<Derived, Threads> {
    board_type board{4, nullptr};
    int runs = 0;      // in total
    int releases = 0;  // in total

    handle create() {
        const auto index = board.take_vacant();
        model::require(index.has_value(), "a vacant slot was lost");
        slot& s = board[*index];
        s.runs.write(0);
        const std::uint64_t generation = s.life.open();
        s.owner.write(static_cast<int>(generation) + 1);
        return {*index, generation};
    }
    // Does what a group does with a claimed contract. `release` is what the run asks for.
    void run(std::size_t index, bool again, bool release) {
        slot& s = board[index];
        if (s.life.is_released()) {
            retire(index);
            return;
        }
        model::require(s.owner.read() != 0, "ran after its release");
        s.runs.write(s.runs.read() + 1);
        ++runs;
        if (release) s.life.release_running();
        board.finish(index, again || release);
    }
    void retire(std::size_t index) {
        slot& s = board[index];
        model::require(s.owner.read() != 0, "a contract was released twice");
        s.owner.write(0);
        ++releases;
        if (planted("contract.bury_early")) board.leave(index);
        (void)s.life.bury();
        if (!planted("contract.bury_early")) board.leave(index);
    }
    bool execute(signal_round& round) {
        const std::size_t index = board.claim(round);
        if (index == no_signal) return false;
        run(index, false, false);
        return true;
    }
    void execute_rest() {
        signal_round round;
        while (execute(round)) {
        }
    }
    // Requires that all slots are vacant again and that each can be taken once.
    void require_whole() {
        for (int i = 0; i != 4; ++i)
            model::require(board.take_vacant().has_value(), "a slot was lost");
        model::require(!board.take_vacant().has_value(), "a slot was vacant twice");
        model::require(board.idle(), "idle() is false for an idle board");
    }
};

}  // namespace coppice::protocol_model
