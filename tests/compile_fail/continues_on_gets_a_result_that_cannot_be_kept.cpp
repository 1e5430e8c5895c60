// expect: does not type-check
// errors: 1
// says: in_algorithm<.*continues_on_t>,[ ]
//     .*got<.*pinned.*wanted<.*decay_copyable_results>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

struct pinned {
    pinned() = default;
    pinned(pinned&&) = delete;
};
void wrong(ex::run_loop& loop) {
    coppice::this_thread::sync_wait(ex::just() | ex::then([]() noexcept { return pinned(); }) |
                                    ex::continues_on(loop.get_scheduler()) |
                                    ex::then([](auto&&) {}));
}
