// place: runs an algorithm on the nearest pool, on a given pool, or on a scheduler.
#pragma once
// An algorithm is an engine: a function without parameters that forks by fork_join and the loops of
// room pool. A place has
//
//   call(engine)       calls the engine there, waits, and returns or rethrows its outcome
//   get_scheduler()    returns the scheduler of the algorithm's sender
//
// An engine returns bool, or an optional of the algorithm's result. It returns false or no value if
// a stop request left work out. It obeys the stop token of the fork_join around the caller.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/as_exception.hpp>
#include <coppice/exec/internal/fork_team.hpp>
#include <coppice/exec/internal/scheduled_sender.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/parallel/internal/namespaces.hpp>
#include <coppice/pool/internal/blocking_call.hpp>
#include <coppice/pool/internal/default_worker.hpp>
#include <coppice/pool/internal/work_item.hpp>

#include <concepts>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace coppice::parallel::internal {

template <class Engine>
using engine_result_t = std::invoke_result_t<Engine&>;

// Calls the engine on this thread. It forks if this thread is a worker that can fork, and otherwise
// runs sequentially. `context` is the fork_context of the algorithm's caller.
template <class Engine>
engine_result_t<Engine> call_engine_here(Engine& engine, const void* context) {
    const fork_context inherited(context);
    const in_order_here if_no_worker;
    return engine();
}

// Returns true if this thread is a worker of the scheduler's pool.
template <class Sch>
bool is_worker_of(const Sch& sch) noexcept {
    const fork_deque* const mine = fork_deque::current();
    return mine != nullptr && execution::internal::team_of(sch) == &mine->team();
}

// The scheduler of the nearest pool: the pool of this worker, or the default pool.
class nearest_scheduler {
public:
    using scheduler_concept = execution::scheduler_tag;
    using item_type = work_item;

    execution::internal::scheduled_sender<nearest_scheduler> schedule() const noexcept {
        return execution::internal::scheduled_sender<nearest_scheduler>(*this);
    }
    // Submits the item. If no pool accepts it, runs it on this thread sequentially.
    static void enqueue(work_item& item) noexcept {
        if (submit_to_nearest_pool(item)) return;
        const in_order_here here;
        item.run(&item);
    }
    bool operator==(const nearest_scheduler&) const = default;
};

class nearest_place {
public:
    template <class Engine>
    static engine_result_t<Engine> call(Engine& engine) {
        return call_on_worker(engine);
    }
    static nearest_scheduler get_scheduler() noexcept { return {}; }
};

// The place on a given pool, which outlives the algorithm.
template <class Pool>
class pool_place {
public:
    explicit pool_place(Pool& pool) noexcept : pool_(&pool) {}

    template <class Engine>
    engine_result_t<Engine> call(Engine& engine) const {
        const void* const context = fork_context::current();
        if (pool_->is_current()) return internal::call_engine_here(engine, context);
        return pool_->run(
            [&engine, context] { return internal::call_engine_here(engine, context); });
    }
    auto get_scheduler() const noexcept { return pool_->get_scheduler(); }

private:
    Pool* pool_;
};

// A call of an engine that a scheduler runs while the caller waits.
template <class Sch, class Engine>
class scheduled_call : immovable {
    using result_type = engine_result_t<Engine>;

public:
    scheduled_call(const Sch& sch, Engine& engine, const void* context)
        : engine_(engine),
          context_(context),
          operation_(execution::connect(execution::schedule(sch), receiver(*this))) {}
    // Blocks: until the engine has returned. Errors: what it throws; an error of schedule.
    result_type run() {
        execution::start(operation_);
        call_.wait();
        if (error_) std::rethrow_exception(std::move(error_));
        return result_ ? *std::move(result_) : result_type{};  // all work was left out
    }

private:
    class receiver {
    public:
        using receiver_concept = execution::receiver_tag;
        explicit receiver(scheduled_call& self) noexcept : self_(&self) {}
        void set_value() && noexcept {
            try {
                self_->result_.emplace(internal::call_engine_here(self_->engine_, self_->context_));
            } catch (...) {
                self_->error_ = std::current_exception();
            }
            self_->call_.finish();
        }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            self_->error_ = execution::internal::as_exception(static_cast<Error&&>(error));
            self_->call_.finish();
        }
        void set_stopped() && noexcept { self_->call_.finish(); }

    private:
        scheduled_call* self_;
    };
    Engine& engine_;
    const void* context_;
    blocking_call call_;
    std::exception_ptr error_;
    std::optional<result_type> result_;
    execution::connect_result_t<execution::schedule_result_t<Sch>, receiver> operation_;
};

template <class Sch>
class scheduler_place {
public:
    explicit scheduler_place(Sch sch) noexcept : sch_(static_cast<Sch&&>(sch)) {}

    template <class Engine>
    engine_result_t<Engine> call(Engine& engine) const {
        const void* const context = fork_context::current();
        if (internal::is_worker_of(sch_)) return internal::call_engine_here(engine, context);
        return scheduled_call<Sch, Engine>(sch_, engine, context).run();
    }
    const Sch& get_scheduler() const noexcept { return sch_; }

private:
    Sch sch_;
};

template <class T>
inline constexpr bool is_place = false;
template <>
inline constexpr bool is_place<nearest_place> = true;
template <class Pool>
inline constexpr bool is_place<pool_place<Pool>> = true;
template <class Sch>
inline constexpr bool is_place<scheduler_place<Sch>> = true;

// A pool: an object that can run a function and has a scheduler.
template <class T>
concept pool = requires(T& x) {
    { x.get_scheduler() } -> execution::scheduler;
    { x.is_current() } -> std::same_as<bool>;
    x.run([] { return true; });
};

}  // namespace coppice::parallel::internal
