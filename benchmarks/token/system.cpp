// The stand-in's queue, and its thread.
#include "system.hpp"

#include <coppice/base/internal/futex.hpp>

#include <thread>

namespace bench_token {

namespace {

// Two rings, as in io_uring: submissions and completions.
constexpr std::uint32_t entries = 64;
struct submission {
    int parameter;
    os_context* context;
};
struct completion {
    int result;
    os_context* context;
};
struct rings {
    submission submitted[entries];
    completion completed[entries];
    std::uint32_t submitted_head = 0, submitted_tail = 0;
    std::uint32_t completed_head = 0, completed_tail = 0;
} ring;

// The kernel's part.
void process() {
    while (ring.submitted_head != ring.submitted_tail) {
        // Field by field: an entry copied as one block, just after its fields were written, stalls.
        const submission& s = ring.submitted[ring.submitted_head++ % entries];
        completion& c = ring.completed[ring.completed_tail++ % entries];
        c.result = s.parameter;
        c.context = s.context;
    }
}

}  // namespace

void os_xyz(int parameter, os_context* context) {
    submission& s = ring.submitted[ring.submitted_tail++ % entries];
    s.parameter = parameter;
    s.context = context;
}
void os_run_one() {
    process();
    if (ring.completed_head == ring.completed_tail) return;
    const completion& c = ring.completed[ring.completed_head++ % entries];
    c.context->callback(c.result, c.context);
}
void os_run() {
    while (ring.submitted_head != ring.submitted_tail ||
           ring.completed_head != ring.completed_tail) {
        os_run_one();
    }
}

// Holds one operation at a time: null, the operation, or the word that ends the thread.
struct os_thread::state {
    coppice::internal::atomic<std::uint32_t> bell{0};
    coppice::internal::atomic<os_context*> slot{nullptr};
    coppice::internal::atomic<bool> end{false};
    std::thread thread;

    void ring() {
        bell.fetch_add(1, coppice::internal::release);
        coppice::internal::futex_wake_one(bell);
    }
    void run() {
        for (;;) {
            const std::uint32_t before = bell.load(coppice::internal::acquire);
            if (os_context* const context = slot.exchange(nullptr, coppice::internal::acquire)) {
                context->callback(context->parameter, context);
            } else if (end.load(coppice::internal::acquire)) {
                return;
            } else {
                coppice::internal::futex_wait(bell, before);
            }
        }
    }
};

os_thread::os_thread() : state_(new state) {
    state_->thread = std::thread([s = state_] { s->run(); });
}
os_thread::~os_thread() {
    state_->end.store(true, coppice::internal::release);
    state_->ring();
    state_->thread.join();
    delete state_;
}
void os_thread::start(int parameter, os_context* context) {
    context->parameter = parameter;
    state_->slot.store(context, coppice::internal::release);
    state_->ring();
}

}  // namespace bench_token
