// spawn_slot: its operation ends on another thread, while its spawner waits to use it again.
#include "exec_model.hpp"

#include <coppice/exec/spawn.hpp>
#include <coppice/exec/spawn_slot.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

constexpr const char* slot_file = "include/coppice/exec/spawn_slot.hpp";

// A sender without results that another thread completes.
struct remote {
    using sender_concept = ex::sender_tag;
    struct base {
        virtual void complete() noexcept = 0;
    };
    template <class Rcvr>
    struct operation final : base {
        using operation_state_concept = ex::operation_state_tag;
        operation(atomic<base*>& to, Rcvr r) noexcept : place(to), rcvr(static_cast<Rcvr&&>(r)) {}
        void start() & noexcept {
            data.write(1);
            place.store(this, release);
        }
        void complete() noexcept override {
            require(data.read() == 1, "completed before its start");
            data.write(2);
            ex::set_value(static_cast<Rcvr&&>(rcvr));
        }
        atomic<base*>& place;
        Rcvr rcvr;
        plain<int> data{0};
    };
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return ex::completion_signatures<ex::set_value_t()>();
    }
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(*place, static_cast<Rcvr&&>(rcvr));
    }
    atomic<base*>* place;
};

// Two rounds in one slot; then the spawner destroys it.
struct used_again : stop_test<used_again, 2> {
    static constexpr int rounds = 2;
    atomic<remote::base*> started{nullptr};
    manual_lifetime<ex::spawn_slot<remote>> slot;
    plain<int> done{0};  // what the operation did

    void run(unsigned index) {
        if (index == 0) {
            slot.construct();
            for (int i = 0; i != rounds; ++i) {
                ex::spawn(remote{&started}, slot.get());
                while (slot.get().is_busy()) thread_yield();
                require(done.read() == i + 1, "free before the operation has ended");
            }
            slot.destroy();
        } else {
            for (int i = 0; i != rounds; ++i) {
                remote::base* op = nullptr;
                while ((op = started.exchange(nullptr, acquire)) == nullptr) thread_yield();
                done.write(i + 1);
                op->complete();
            }
        }
    }
};

}  // namespace

int main() {
    report report("spawn_slot");
    report.holds<used_again>("a slot that is free is used again, and destroyed");
    report.dies_weakened<used_again>(slot_file, "spawn_slot.free");
    return report.finish();
}
