// context_pool: one context per core, each run by a thread of its own.
#pragma once
// Loops share nothing: what is accepted on a loop stays there, so handlers of one connection need
// no lock. Listen on each loop with acceptor_options::share_port, or hand work out with next().

#include <coppice/io/context.hpp>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace coppice::io {

// Threads: members by any, except for the destructor.
class context_pool : immovable {
public:
    // Starts the threads; 0: as many as this process may use cores. Errors: std::system_error;
    // std::invalid_argument for more than 65,536.
    explicit context_pool(std::size_t threads = 0, backend kind = backend::automatic);
    // Waits for what is pending, unless stop() or drain() was called before, and joins. Operations
    // that nobody ends keep it waiting.
    ~context_pool();

    // How many contexts there are, and each of them; `index` is less than size().
    std::size_t size() const noexcept { return loops_.size(); }
    context& at(std::size_t index) noexcept { return loops_[index]->loop; }
    // The contexts in turn; for work that may go anywhere.
    context& next() noexcept {
        return at(turn_.fetch_add(1, internal::relaxed) % size());  // relaxed: only a number
    }

    // Ends what is pending on every loop with operation_canceled. The first call of stop() and
    // drain() counts. Blocks: never.
    void stop() noexcept { drain(internal::duration::zero()); }
    // Gives what is pending, and what it starts, `limit` to end by itself before that.
    void drain(internal::duration limit) noexcept;
    // Waits until the threads have ended, as the destructor does: sockets, and what else handlers
    // use, may be destroyed afterwards and before the pool. Called by one thread, none of its own.
    void join() noexcept;

private:
    // A loop, and what it takes to end it from outside.
    struct running_loop : immovable {
        explicit running_loop(backend kind) : loop(kind), guard(loop), end(*this) {}
        void run() noexcept;

        // Posted once.
        struct end_request : operation {
            explicit end_request(running_loop& l) noexcept : operation(&begin), owner(l) {}
            static void begin(operation* op) noexcept;
            running_loop& owner;
        };
        context loop;
        std::optional<context::work_guard> guard;
        // written before the end is posted
        internal::duration patience = internal::duration::max();
        end_request end;
        std::thread thread;
    };

    std::vector<std::unique_ptr<running_loop>> loops_;
    internal::atomic<std::size_t> turn_{0};
    internal::atomic<bool> ending_{false};  // set by the first drain(); nothing rides on it
};

}  // namespace coppice::io
