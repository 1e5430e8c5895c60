// work_service: the items of work_sharing.hpp that others may take, how they move, and the end.
#pragma once
// A process that has no item asks another one, which it draws, and gets the older half of what that
// one offers, or nothing. It asks one process at a time. The service of a process answers on the
// environment's thread, while the worker is in an item. So a long item delays no thief.
//
// The end of all work is found in waves: each is an all_reduce to which a process contributes when
// it has no items and asks no other. It contributes how many messages with items it has sent and
// received. If all had received, in one wave, as many as all have sent in the next, then between
// the two no message was on its way, and no process has become active since its contribution to the
// first. So there is no work. An item that another thread adds counts as a message of the process
// to itself. Source: Mattern 1987, "Algorithms for distributed termination detection", the
// four-counter method.
//
// A process whose function has thrown, or that was stopped, tells all others at once, and all end
// the run with the next wave. A last all_reduce says how many have told, so that each waits for
// what is still on its way, and the next run begins with nothing in flight.
//
// A run allocates nothing after its start: a process without memory could not tell the others, and
// they would wait. Its frames are made by the call, the operation of a wave is a member, and each
// process has memory for the largest message.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/sender.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/bytes.hpp>
#include <coppice/mpi/internal/service.hpp>
#include <coppice/mpi/internal/share.hpp>
#include <coppice/task/task.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <system_error>
#include <utility>

namespace coppice::mpi {

// What a process did in a run of a work_sharing.
struct work_counts {
    std::uint64_t worked = 0;  // items for which it has called its function
    std::uint64_t taken = 0;   // items that it got from other processes
    std::uint64_t given = 0;   // items that it gave to them
};

}  // namespace coppice::mpi

namespace coppice::mpi::internal {

class work_service : immovable {
public:
    // What a worker does with the items.
    class work {
    public:
        // Works until there is no item here, or should_end(), or a stop is requested.
        virtual void off(inplace_stop_token stop) = 0;

    protected:
        ~work() = default;
    };

    work_service(const communicator& over, std::size_t item_size);
    ~work_service();

    // Returns a task that runs what use() was given whenever there are items here, until all
    // processes have none. Collective. Errors and stops: those of work_sharing::run();
    // std::bad_alloc from the call.
    task<> make_run();
    // Says what the next run calls. Called before it starts, and after the run before it has ended:
    // otherwise a message ends the process. Lifetime: until the run has ended.
    void use(work& w) noexcept;

    // Adds an item for the run that is on, or for the next. Threads: any.
    void add(std::span<const std::byte> item);
    // Returns true if no item is offered to other processes. Threads: the worker.
    bool wants_offer() const noexcept {
        // relaxed: a hint; the items are read and written under the mutex
        return is_shared_ && offered_count_.load(relaxed) == 0;
    }
    // Offers items, oldest first. Threads: the worker.
    void offer(std::span<const std::byte> items);
    // Calls f(items) with the newer half of what is offered, which is all if there is one. Removes
    // these items then, unless it has thrown. Returns false if there is nothing. Threads: the
    // worker.
    template <class F>
    bool take_back(F f) {
        const std::scoped_lock lock(mutex_);
        const std::size_t size = half_of_offered();
        if (size != 0) take_newest(size, f);
        return size != 0;
    }
    // Likewise with all items. Threads: any, while no run is on.
    template <class F>
    void take_all(F f) {
        const std::scoped_lock lock(mutex_);
        take_newest(offered_.size() - first_, f);
    }
    // Returns true if the run ends before all is done. Threads: the worker.
    bool should_end() const noexcept {
        // relaxed: a worker that sees it later works on a few more items
        return is_ending_.load(relaxed) || has_failed();
    }
    std::size_t offered() const noexcept { return offered_count_.load(relaxed); }  // as above
    // Counts a call of the function. Threads: the worker.
    void count_worked() noexcept { ++counts_.worked; }
    // Returns what this process has done since the run began. Threads: any, while no run is on.
    work_counts counts() const noexcept;

private:
    enum class what : std::uint32_t { ask, end };
    struct message {
        what kind;
        std::uint32_t run;
    };
    using wave_numbers = std::array<std::int64_t, 3>;  // sent, received, whether the run ends
    class wave_receiver {
    public:
        using receiver_concept = execution::receiver_tag;
        explicit wave_receiver(work_service& s) noexcept : service_(&s) {}
        void set_value() && noexcept { service_->end_wave({}); }
        void set_error(std::error_code e) && noexcept { service_->end_wave(e); }

    private:
        work_service* service_;
    };
    using wave_operation =
        execution::connect_result_t<decltype(take_part<kind::all_reduce>(
                                        std::declval<const communicator&>(),
                                        std::declval<wave_numbers&>(),
                                        std::declval<wave_numbers&>(), reduction::sum)),
                                    wave_receiver>;

    task<> listen(task<> serving);
    task<> serve();
    task<> run(task<> to_end);
    task<> run_to_end();
    bool has_open_wave() const noexcept;
    void begin() noexcept;
    void advance_wave();
    void end_wave(std::error_code error) noexcept;
    void drop_wave() noexcept;
    void judge_wave();
    std::chrono::nanoseconds next_pause() noexcept;
    bool has_items() const noexcept { return offered() != 0 && !should_end(); }
    std::size_t give() noexcept;
    void accept(std::span<const std::byte> items) noexcept;
    void hear_end(std::uint32_t run) noexcept;
    // Returns true if a process has failed, so that not all processes come to the end of a run.
    bool has_failed() const noexcept {
        // relaxed: a hint, which a later look sees
        return is_lost_.load(relaxed) || communicator_access::owner(own_).failed_rank() >= 0;
    }
    bool has_heard(std::int64_t ends) noexcept;
    int draw_victim() noexcept;
    void make_room(std::size_t size);
    void append(std::span<const std::byte> items);
    void count_offered() noexcept {
        offered_count_.store((offered_.size() - first_) / item_size_, relaxed);  // a hint
    }
    // Returns the bytes of the larger half.
    std::size_t half_of_offered() const noexcept {
        return ((offered_.size() - first_) / item_size_ + 1) / 2 * item_size_;
    }
    template <class F>
    void take_newest(std::size_t size, F& f) {
        f(std::span<const std::byte>(offered_).last(size));
        offered_.resize(offered_.size() - size);
        count_offered();
    }

    std::size_t item_size_;
    std::size_t share_max_;  // bytes of a message
    bytes reply_;            // written by the service
    bytes got_;              // written by the run
    execution::counting_scope listeners_;

    mutable std::mutex mutex_;  // of all up to the atomics
    bytes offered_;             // the oldest first, from first_ on
    std::size_t first_ = 0;
    std::int64_t sent_ = 0;  // messages with items
    std::int64_t received_ = 0;
    std::uint32_t run_ = 0;                     // the number of the run that is on, or of the last
    std::array<std::int64_t, 2> ends_heard_{};  // of even and of odd runs
    bool is_running_ = false;                   // otherwise no item leaves
    bool wave_has_ended_ = false;
    std::error_code wave_error_;
    atomic<std::size_t> offered_count_{0};  // items; written under the mutex
    atomic<bool> is_ending_{false};         // the run ends early; written under the mutex
    atomic<bool> is_lost_{false};           // the listener has failed

    // Used by the run only.
    work* work_ = nullptr;
    manual_lifetime<wave_operation> wave_;  // while wave_is_on_
    wave_numbers contributed_{};
    wave_numbers sums_{};
    std::int64_t received_before_ = -1;  // by all, in the wave before; negative: there was none
    bool wave_is_on_ = false;
    bool is_over_ = false;
    bool has_told_ = false;
    bool has_agreed_ = false;  // with the others about the end
    int refusals_ = 0;         // one after the other, since the last pause
    std::int64_t pause_ = 0;   // nanoseconds
    // `worked` is written by the worker, `taken` by the run, and `given` under the mutex.
    work_counts counts_{};

    service service_{listen(serve())};
    communicator own_;
    bool is_shared_;  // there are other processes
    std::uint64_t random_;
};

}  // namespace coppice::mpi::internal
