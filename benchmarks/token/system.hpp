// The operating system's stand-in: the low-level interface that P0055R1, "Details", assumes.
#pragma once
// Every rival starts operations with os_xyz() and gets their results through a function pointer,
// from a queue that os_run() empties. Both are in their own file, so that no compiler inlines them.

#include <coppice/base/lifetime.hpp>

namespace bench_token {

struct os_context {
    void (*callback)(int result, os_context*) = nullptr;
    int parameter = 0;  // for the caller of os_xyz()
};

// Queues an operation. The context stays valid until its callback is called.
void os_xyz(int parameter, os_context* context);
// Completes all submitted operations, and those that they start; at most 64 at once.
void os_run();
// Completes one operation.
void os_run_one();

// A system on a thread of its own: started operations complete there.
class os_thread : coppice::immovable {
public:
    os_thread();
    ~os_thread();
    void start(int parameter, os_context* context);

private:
    struct state;
    state* state_;
};

}  // namespace bench_token
