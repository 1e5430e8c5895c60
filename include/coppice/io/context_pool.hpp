// context_pool: one context per core, each run by its own thread.
#pragma once
// Loops share nothing. A connection stays on the loop that accepted it, so the handlers of one
// connection need no lock. Listen on each loop with acceptor_options::share_port, or distribute
// work with next().

#include <coppice/io/context.hpp>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace coppice::io {

// Loops and their threads. Threads: any, for all members except the destructor and join().
class context_pool : immovable {
public:
    // Starts the threads. 0 means one for each core that this process may use. Errors:
    // std::system_error; std::invalid_argument for more than 65,536 threads.
    explicit context_pool(std::size_t threads = 0, backend kind = backend::automatic);
    // Waits until nothing is pending, unless stop() or drain() was called before, and joins the
    // threads. Blocks: for as long as an operation stays pending.
    ~context_pool();

    // Return the number of contexts, and one of them; `index` must be less than size().
    std::size_t size() const noexcept { return loops_.size(); }
    context& at(std::size_t index) noexcept { return loops_[index]->loop; }
    // Returns the contexts in turn, for work that may run on any of them.
    context& next() noexcept {
        return at(turn_.fetch_add(1, internal::relaxed) % size());  // relaxed: only a number
    }

    // Ends every pending operation on every loop with operation_canceled. Of all calls of stop()
    // and drain(), only the first takes effect. Blocks: never.
    void stop() noexcept { drain(internal::duration::zero()); }
    // Lets pending operations, and those that they start, end by themselves for `limit`, and then
    // cancels the rest as stop() does. Blocks: never.
    void drain(internal::duration limit) noexcept;
    // Waits until the threads have ended, as the destructor does. Sockets, and other objects that
    // handlers use, may be destroyed between join() and the destruction of the pool.
    // Threads: one caller, which must not be a thread of the pool.
    void join() noexcept;

private:
    // A loop, its thread, and what is needed to end it from another thread.
    struct running_loop : immovable {
        explicit running_loop(backend kind) : loop(kind), guard(loop), end(*this) {}
        void run() noexcept;

        // Posted to the loop at most once, by the first stop() or drain().
        struct end_request : operation {
            explicit end_request(running_loop& l) noexcept : operation(&begin), owner(l) {}
            static void begin(operation* op) noexcept;
            running_loop& owner;
        };
        context loop;
        std::optional<context::work_guard> guard;
        // How long drain() lets pending operations run. Written before `end` is posted.
        internal::duration patience = internal::duration::max();
        end_request end;
        std::thread thread;
    };

    std::vector<std::unique_ptr<running_loop>> loops_;
    internal::atomic<std::size_t> turn_{0};
    internal::atomic<bool> ending_{false};  // set by the first drain(); publishes nothing
};

}  // namespace coppice::io
