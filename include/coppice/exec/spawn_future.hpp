// spawn_future: starts a sender in a scope now, and returns a sender of its result.
#pragma once
// The spawned operation and its future share one allocation, the state. Two things can happen to it
// from each side, in any order, and one word decides between them:
//
//   running    neither side has acted
//   stopped    the consumer's stop came before the consumer registered; consume() completes it as
//              stopped
//   waiting    a consumer is registered
//   completed  the result is stored
//   over       no consumer will come; complete() only ends
//
// The table has the next state and the action. "-" leaves the state, "never" cannot happen.
//
//   found      complete        consume              try_set_stopped      abandon
//   running    completed       waiting              stopped              over
//   stopped    completed       over, set_stopped    -                    over
//   waiting    over, deliver   never                over, set_stopped    never
//   completed  never           deliver              -                    -
//   over       -               never                -                    never
//
// The state has up to three holders: the operation until it has completed, the future until it has
// been consumed or abandoned, and a stop callback while it runs, because the operation may complete
// inside it. The last holder destroys the state, and then leaves the scope. Source:
// [exec.spawn.future]. Model: tests/model/spawn_future_model.cpp.

#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/stop/single.hpp>

namespace coppice::execution {

struct spawn_future_t {
    template <sender Sndr, scope_token Token, internal::queryable Env = env<>>
    auto operator()(Sndr&& sndr, Token token, Env spawn_env = Env(),
                    std::source_location where = std::source_location::current()) const;
};

// Where the two sides of a spawn_future meet. Threads: one operation, one consumer, one stop
// callback.
class future_meeting : immovable {
public:
    enum class found : unsigned char { running, stopped, waiting, completed, over };

    // Each returns the state that it found, and moves on from it as the table says.
    [[nodiscard]] found complete() noexcept {
        return move_on([](found seen) {
            if (seen == found::running || seen == found::stopped) return found::completed;
            return internal::planted("future.keep_waiting") ? seen : found::over;
        });
    }
    [[nodiscard]] found consume() noexcept {
        return move_on([](found seen) {
            if (seen == found::running) return found::waiting;
            return seen == found::stopped ? found::over : seen;
        });
    }
    [[nodiscard]] found try_set_stopped() noexcept {
        return move_on([](found seen) {
            if (seen == found::running) return found::stopped;
            return seen == found::waiting ? found::over : seen;
        });
    }
    [[nodiscard]] found abandon() noexcept {
        return move_on([](found seen) { return seen == found::completed ? seen : found::over; });
    }

    // Adds a holder. The caller is one already.
    // relaxed: the caller's own share keeps the state
    void hold() noexcept { holders_.fetch_add(1, internal::relaxed); }
    // Returns true if that was the last holder; the caller must destroy the state.
    [[nodiscard]] bool let_go() noexcept {
        // edge future.let_go (release), edge future.let_go (acquire): the last sees all work
        return holders_.fetch_sub(1, internal::acq_rel) == 1;
    }

private:
    template <class Next>
    found move_on(Next next) noexcept {
        found seen = state_.load(internal::relaxed);
        while (
            // edge future.meet (release), edge future.meet (acquire): the result, or the consumer
            !state_.compare_exchange_weak(seen, next(seen), internal::acq_rel, internal::relaxed)) {
        }
        return seen;
    }

    internal::atomic<found> state_{found::running};
    internal::atomic<unsigned> holders_{2};  // the operation and the future
};

template <class Sigs>
class future_state_base : public future_meeting {
public:
    // The reader of the result. Either call may destroy it.
    class consumer {
    public:
        virtual void deliver(completion_store<Sigs>& result) noexcept = 0;
        virtual void stopped() noexcept = 0;

    protected:
        ~consumer() = default;
    };

    // Called by the spawned operation after the result is stored.
    void operation_completed() noexcept {
        if (complete() == found::waiting) {
            consumer_->deliver(result);
            release();  // the future's share
        }
        release();
    }
    // Called by the future, once: registers a consumer or completes it.
    void consume(consumer& reader) noexcept {
        consumer_ = &reader;
        const found seen = future_meeting::consume();
        if (seen == found::running) return;
        if (seen == found::completed) {
            reader.deliver(result);
        } else {
            reader.stopped();
        }
        release();
    }
    // Called by the future if there will be no consumer.
    void abandon() noexcept {
        if (future_meeting::abandon() != found::completed) stop_operation();
        release();
    }
    // Called by the consumer's stop callback.
    void try_cancel() noexcept {
        const bool held = !internal::planted("future.cancel_unheld");
        if (held) hold();
        stop_operation();
        if (try_set_stopped() == found::waiting) {
            consumer_->stopped();
            release();  // the future's share
        }
        if (held) release();
    }

    completion_store<Sigs> result;  // written by the operation

protected:
    ~future_state_base() = default;

private:
    virtual void stop_operation() noexcept = 0;
    virtual void destroy() noexcept = 0;
    void release() noexcept {
        if (let_go()) destroy();
    }

    consumer* consumer_ = nullptr;  // written by the future before it is registered
};

template <class Sigs>
class spawn_future_receiver {
public:
    using receiver_concept = receiver_tag;
    explicit spawn_future_receiver(future_state_base<Sigs>& state) noexcept : state_(&state) {}
    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        state_->result.keep(set_value_t(), static_cast<Args&&>(args)...);
        state_->operation_completed();
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        state_->result.keep(set_error_t(), static_cast<Error&&>(error));
        state_->operation_completed();
    }
    void set_stopped() && noexcept {
        state_->result.keep(set_stopped_t());
        state_->operation_completed();
    }

private:
    future_state_base<Sigs>* state_;
};

// What is connected: the sender, which the state's own source also stops, in the given environment.
template <class Wrapped, class Env>
using spawned_future_t = decltype(write_env(
    stop_when(std::declval<Wrapped>(), std::declval<single_inplace_stop_token>()),
    std::declval<Env>()));
template <class Wrapped, class Env>
using future_signatures_t = signatures_union_t<signatures_of<spawned_future_t<Wrapped, Env>, env<>>,
                                               completion_signatures<set_stopped_t()>>;

template <class Allocator, class Token, class Wrapped, class Env>
class spawn_future_state final : public future_state_base<future_signatures_t<Wrapped, Env>> {
    using Sigs = future_signatures_t<Wrapped, Env>;
    using association = decltype(std::declval<Token&>().try_associate());

public:
    spawn_future_state(Allocator allocator, Wrapped&& sndr, Token token, Env&& spawn_env,
                       std::source_location where)
        : allocator_(allocator),
          operation_(execution::connect(
              write_env(stop_when(static_cast<Wrapped&&>(sndr), source_.get_token()),
                        static_cast<Env&&>(spawn_env)),
              spawn_future_receiver<Sigs>(*this))),
          assoc_(token.try_associate()),
          listing_(where) {}

    void run() noexcept {
        if (assoc_) {
            listing_.enter(assoc_);
            execution::start(operation_);
        } else {
            spawn_future_receiver<Sigs>(*this).set_stopped();
        }
    }

private:
    void stop_operation() noexcept override { source_.request_stop(); }
    void destroy() noexcept override {
        const association leaving = static_cast<association&&>(assoc_);
        execution::internal::delete_with(Allocator(allocator_), this);
    }
    template <class A, class T>
    friend void delete_with(A, T*) noexcept;

    [[no_unique_address]] Allocator allocator_;
    internal::tolerant_single_stop_source source_;
    connect_result_t<spawned_future_t<Wrapped, Env>, spawn_future_receiver<Sigs>> operation_;
    association assoc_;
    scope_listing listing_;
};

// Owns the future's share of the state. Abandons it if it was not released to a consumer.
template <class Sigs>
class future_handle {
public:
    explicit future_handle(future_state_base<Sigs>& state) noexcept : state_(&state) {}
    future_handle(future_handle&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    future_handle& operator=(future_handle&&) = delete;
    ~future_handle() {
        if (state_ != nullptr) state_->abandon();
    }
    future_state_base<Sigs>* get() const noexcept { return state_; }
    future_state_base<Sigs>* release() noexcept { return std::exchange(state_, nullptr); }

private:
    future_state_base<Sigs>* state_;
};

template <class Sigs, class Rcvr>
class future_operation final : future_state_base<Sigs>::consumer {
    class cancel {
    public:
        explicit cancel(future_state_base<Sigs>& state) noexcept : state_(&state) {}
        void operator()() noexcept { state_->try_cancel(); }

    private:
        future_state_base<Sigs>* state_;
    };

public:
    using operation_state_concept = operation_state_tag;

    future_operation(future_handle<Sigs>&& handle, Rcvr rcvr) noexcept
        : rcvr_(static_cast<Rcvr&&>(rcvr)), handle_(static_cast<future_handle<Sigs>&&>(handle)) {}
    future_operation(future_operation&&) = delete;
    ~future_operation() {
        COPPICE_CHECK(!waiting_, "an operation of spawn_future was destroyed while it was running");
    }

    void start() & noexcept {
        COPPICE_CHECK(handle_.get() != nullptr, "an operation of spawn_future was started twice");
        waiting_ = true;
        on_stop_.engage(get_stop_token(execution::get_env(rcvr_)), cancel(*handle_.get()));
        handle_.release()->consume(*this);
    }

private:
    void deliver(completion_store<Sigs>& result) noexcept override {
        on_stop_.reset();
        waiting_ = false;
        result.deliver(rcvr_);
    }
    void stopped() noexcept override {
        on_stop_.reset();
        waiting_ = false;
        set_stopped(static_cast<Rcvr&&>(rcvr_));
    }

    [[no_unique_address]] Rcvr rcvr_;
    future_handle<Sigs> handle_;
    [[no_unique_address]] stop_registration<stop_token_of_t<env_of_t<Rcvr>>, cancel> on_stop_;
    bool waiting_ = false;  // written before it is registered, and by the completing thread
};

// Decomposes as [tag, data].
template <class Sigs>
struct spawn_future_sender {
    using sender_concept = sender_tag;
    using tag_type = spawn_future_t;
    using decomposable = void;

    future_handle<Sigs> data;

    explicit spawn_future_sender(future_state_base<Sigs>& state) noexcept : data(state) {}

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return delivered_signatures_t<Sigs>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && noexcept -> future_operation<Sigs, Rcvr> {
        return {static_cast<future_handle<Sigs>&&>(data), static_cast<Rcvr&&>(rcvr)};
    }
};

// Starts sndr in token's scope and returns a sender of its result, which completes with set_stopped
// if the scope refuses. Destroying the returned sender asks the operation to stop. Errors: what
// allocating or connecting throws. Cost: one allocation.
template <sender Sndr, scope_token Token, internal::queryable Env>
auto spawn_future_t::operator()(Sndr&& sndr, Token token, Env spawn_env,
                                std::source_location where) const {
    auto wrapped = token.wrap(static_cast<Sndr&&>(sndr));
    auto allocator = execution::choose_allocator(wrapped, spawn_env);
    auto full_env = execution::spawned_env(wrapped, token, static_cast<Env&&>(spawn_env));
    using Wrapped = decltype(wrapped);
    using FullEnv = decltype(full_env);
    using Sigs = future_signatures_t<Wrapped, FullEnv>;
    if constexpr (!is_completion_signatures<Sigs>) {
        static_assert(internal::diagnosis<Sigs>::reported);
    } else {
        using state = spawn_future_state<decltype(allocator), Token, Wrapped, FullEnv>;
        state* const spawned = execution::internal::new_with<state>(
            allocator, allocator, static_cast<Wrapped&&>(wrapped), token,
            static_cast<FullEnv&&>(full_env), where);
        spawned->run();
        return spawn_future_sender<Sigs>(*spawned);
    }
}
inline constexpr spawn_future_t spawn_future{};

}  // namespace coppice::execution
