// request: one operation of MPI on its way through the engine.
#pragma once
// begin() posts the request, or starts it at once on the owner. From then on everything happens on
// the owner: start() makes the call, which may complete at once; otherwise its handles are tested
// in every turn. A stop or a deadline cancels a request that can be canceled, and the request ends
// when MPI says whether the cancel or the message came first.
//
// If the engine watches for failures, start() lends MPI copies of the program's memory, and keep()
// copies results back. So a request that is given up leaves nothing that accesses that memory.

#include <coppice/io/internal/stop_relay.hpp>
#include <coppice/mpi/internal/element.hpp>
#include <coppice/mpi/internal/engine.hpp>
#include <coppice/mpi/internal/namespaces.hpp>

#include <mpi.h>
#include <cstddef>
#include <system_error>

namespace coppice::mpi::internal {

class request : operation, io::internal::stop_relay<engine, operation> {
    using relay = io::internal::stop_relay<engine, operation>;
    friend engine;

public:
    // Starts the request. Returns true if it has ended; completed() will then not be called.
    // Otherwise completed() is called on the owner, possibly before this returns. Threads: any.
    [[nodiscard]] bool begin(inplace_stop_token token, time_point deadline) noexcept;
    std::error_code error() const noexcept { return error_; }
    // Returns true if it ended because of a stop request or its deadline.
    bool stopped() const noexcept { return stopped_ && is_canceled_; }

    request* next_ended = nullptr;  // used by the engine

protected:
    enum class [[nodiscard]] outcome { started, failed, again };
    // Handles of the same request: the first is the one that can be canceled.
    struct handles {
        MPI_Request each[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        int returned = MPI_SUCCESS;  // by the call, if it failed
    };

    // `over`: the communicator that is revoked if the request finds that a process has failed;
    // MPI_COMM_NULL: none. `waits`: start() calls MPI by call_waiting().
    request(engine& owner, MPI_Comm over, bool can_cancel, bool waits = false) noexcept
        : operation(&launch_posted),
          engine_(&owner),
          over_(over),
          can_cancel_(can_cancel),
          waits_(waits) {}
    virtual ~request();

    // Makes the call on the owner; `again` asks to be called in the next turn too.
    virtual outcome start(handles& made) noexcept = 0;
    // Keeps what the status of the first handle says.
    virtual void keep(const MPI_Status&) noexcept {}
    // Called when all handles have completed without an error. Returns true if the request has
    // another step, which start() makes. A request that overrides this calls have_steps().
    virtual bool continues() noexcept { return false; }
    // Returns true if other processes may wait for this one after it has failed.
    virtual bool is_collective() const noexcept { return false; }
    // Called on the owner as the last access; may destroy the request.
    virtual void completed() noexcept = 0;
    void fail(std::error_code error) noexcept { error_ = error; }
    // Fails with the error that MPI has returned, and revokes the communicator if that says that a
    // process has failed.
    void fail_by(int returned) noexcept;
    engine& owner() const noexcept { return *engine_; }
    bool uses_copies() const noexcept { return engine_->is_watched(); }
    // Says whether other processes wait for what the request does next, and cannot be told that it
    // fails. Then it takes spare memory. If there is none, the environment fails everywhere, unless
    // it does not watch for failures.
    void hold_others(bool does) noexcept { holds_others_ = does; }
    // Makes the engine keep room for further steps, so that none fails for want of it. Called by
    // the constructor.
    void have_steps() noexcept { has_steps_ = true; }
    // Returns memory that is given back with the request; nullptr, with an error, if there is none.
    void* lend(std::size_t size) noexcept;
    // Makes `m` a copy, if the engine watches for failures. Returns false, with an error, if there
    // is no memory.
    [[nodiscard]] bool lend_copy(memory& m) noexcept;
    // Likewise, without a copy of what is there.
    [[nodiscard]] bool lend_space(memory& m) noexcept;

private:
    struct lent_block {
        lent_block* next;
        alignas(std::max_align_t) std::byte memory[1];
    };
    bool launch() noexcept;
    void listen() noexcept;
    bool try_start() noexcept;
    bool start_step() noexcept;
    void track(handles& made) noexcept;
    bool is_over() const noexcept { return waiting_ == 0 && !is_polled_; }
    void note(int which, const MPI_Status& status, int returned) noexcept;
    bool stays(int returned, int done, MPI_Request& handle) noexcept;
    void end_canceled() noexcept;
    void end_without_memory() noexcept;
    void ended() noexcept;
    void interrupt() noexcept;
    void give_up() noexcept;
    static void launch_posted(operation* op) noexcept;
    static void interrupt_relayed(relay& r) noexcept;
    static void complete_relayed(relay& r) noexcept { static_cast<request&>(r).completed(); }

    engine* engine_;
    MPI_Comm over_;
    inplace_stop_token token_;
    time_point deadline_ = time_point::max();
    std::error_code error_;
    std::size_t index_[2] = {0, 0};  // in the engine's array, kept by the engine
    int waiting_ = 0;                // handles that have not completed
    lent_block* lent_ = nullptr;     // the last one
    bool can_cancel_;
    bool waits_;
    bool is_polled_ = false;
    bool is_listening_ = false;  // for a stop
    bool stopped_ = false;       // by a stop or a deadline, not by the end of the environment
    bool interrupted_ = false;   // told to end
    bool is_canceled_ = false;
    bool holds_others_ = false;
    bool has_steps_ = false;  // further ones, for which the engine keeps room
};

}  // namespace coppice::mpi::internal
