// split: a sender that can be started many times, while its child runs once for all.
#pragma once
// The copies of a split sender share one state: the child's operation, its result, and the waiting
// consumers. The first consumer to start also starts the child. Each consumer gets the results as
// const lvalues. A stop request of any consumer reaches the child, through a
// tolerant_single_stop_source (P3409R1).
//
//   waiting_   nullptr | the newest of a list of consumers | done
//
//   add        nullptr -> the consumer, which then starts the child
//              a list -> a longer list
//              done -> stays; the result is stored, and the consumer completes at once
//   finish     -> done; the finishing thread completes every consumer of the list
//
// The holders of the state are counted: every sender and every operation, and the child while it
// runs. Source: P2300R10 [exec.split] (not in C++26), P3409R1 5.5.1. Cost: one allocation per
// split. Model: tests/model/split_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/allocate.hpp>
#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/internal/stop_registration.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/stop/single.hpp>

namespace coppice::execution {

struct split_t : sender_adaptor_closure<split_t> {
    template <sender Sndr>
    auto operator()(Sndr&& sndr) const;
    constexpr auto operator()() const noexcept { return execution::bind_adaptor(*this); }
};

// Collects the waiting consumers. Threads: any number of add(), one finish().
class split_meeting : immovable {
public:
    class consumer : immovable {
    public:
        virtual void complete() noexcept = 0;
        internal::plain<consumer*> next{nullptr};  // written by add(), read by finish()

    protected:
        ~consumer() = default;
    };
    enum class added : unsigned char { first, later, too_late };

    // Returns first if the caller must start the child, later if complete() will be called, and
    // too_late if the result is stored.
    [[nodiscard]] added add(consumer& c) noexcept {
        // edge split.done (acquire): the result is stored
        consumer* seen = waiting_.load(internal::acquire);
        do {
            if (seen == done()) return added::too_late;
            c.next.write(seen);
            // edge split.add (release), edge split.done (acquire): the consumer is linked
        } while (!waiting_.compare_exchange_weak(seen, &c, internal::release, internal::acquire));
        return seen == nullptr ? added::first : added::later;
    }
    // Called after the result is stored: completes all waiting consumers, which may destroy them.
    void finish() noexcept {
        // edge split.add (acquire), edge split.done (release): the consumers; the result is stored
        consumer* c = waiting_.exchange(done(), internal::acq_rel);
        while (c != nullptr) {
            consumer* const following = c->next.read();
            c->complete();
            c = following;
        }
    }

    // relaxed: the caller's own share keeps the state
    void hold() noexcept { holders_.fetch_add(1, internal::relaxed); }
    [[nodiscard]] bool let_go() noexcept {
        // edge split.let_go (release), edge split.let_go (acquire): the last sees all work
        return holders_.fetch_sub(1, internal::acq_rel) == 1;
    }

private:
    // Returns an address that no consumer has.
    consumer* done() noexcept { return reinterpret_cast<consumer*>(this); }

    internal::atomic<consumer*> waiting_{nullptr};  // see above; written by all threads
    internal::atomic<std::size_t> holders_{1};
};

// The child's environment: only a stop token.
class split_env {
public:
    explicit split_env(single_inplace_stop_token token) noexcept : token_(token) {}
    single_inplace_stop_token query(get_stop_token_t) const noexcept { return token_; }

private:
    single_inplace_stop_token token_;
};

template <class Fn>
struct split_signature;
template <class Tag, class... Args>
struct split_signature<Tag(Args...)> {
    using type = Tag(const std::decay_t<Args>&...);
};
template <class Sigs>
struct split_signatures;
template <class... Fns>
struct split_signatures<completion_signatures<Fns...>> {
    using shared =
        internal::set_insert_t<completion_signatures<>, typename split_signature<Fns>::type...>;
    using complete =
        std::conditional_t<(stores_results_nothrow<Fns> && ...), shared,
                           internal::set_insert_t<shared, set_error_t(const std::exception_ptr&)>>;
    using type = std::conditional_t<
        (stores_results<Fns> && ...), internal::set_insert_t<complete, set_stopped_t()>,
        pipeline_error<in_algorithm<split_t>, got<Fns...>, wanted<decay_copyable_results>>>;
};

// The part of the state that consumers use.
template <class Sigs>
class split_state_base : public split_meeting {
public:
    internal::tolerant_single_stop_source source;
    completion_store<Sigs> result;  // written by the child before finish()

    // Called when add() returned first.
    void start_child() noexcept {
        // The child's share. Until this call returns, the starter is a holder itself.
        if (!internal::planted("split.start_unheld")) hold();
        if (source.stop_requested()) {
            child_completed(set_stopped_t());
        } else {
            start_operation();
        }
    }
    template <class Tag, class... Args>
    void child_completed(Tag tag, Args&&... args) noexcept {
        result.keep(tag, static_cast<Args&&>(args)...);
        finish();
        release();
    }
    void release() noexcept {
        if (let_go()) destroy();
    }

protected:
    ~split_state_base() = default;

private:
    virtual void start_operation() noexcept = 0;
    virtual void destroy() noexcept = 0;
};

template <class Sigs>
class split_receiver {
public:
    using receiver_concept = receiver_tag;
    explicit split_receiver(split_state_base<Sigs>& state) noexcept : state_(&state) {}
    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        state_->child_completed(set_value_t(), static_cast<Args&&>(args)...);
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        state_->child_completed(set_error_t(), static_cast<Error&&>(error));
    }
    void set_stopped() && noexcept { state_->child_completed(set_stopped_t()); }
    split_env get_env() const noexcept { return split_env(state_->source.get_token()); }

private:
    split_state_base<Sigs>* state_;
};

template <class Sndr>
using split_stored_t =
    signatures_union_t<signatures_of<Sndr, split_env>, completion_signatures<set_stopped_t()>>;

template <class Sndr, class Allocator>
class split_state final : public split_state_base<split_stored_t<Sndr>> {
    using Sigs = split_stored_t<Sndr>;

public:
    split_state(Allocator allocator, Sndr&& sndr)
        : allocator_(allocator),
          operation_(execution::connect(static_cast<Sndr&&>(sndr), split_receiver<Sigs>(*this))) {}
    split_state(split_state&&) = delete;

private:
    void start_operation() noexcept override { execution::start(operation_); }
    void destroy() noexcept override {
        execution::internal::delete_with(Allocator(allocator_), this);
    }

    [[no_unique_address]] Allocator allocator_;
    connect_result_t<Sndr, split_receiver<Sigs>> operation_;
};

// Passes a consumer's stop to the child. The child may complete inside the request, and the last
// holder may destroy the state before the request has returned. That is safe: request_stop() does
// not touch the source after its last callback has ended (stop/internal/way_back.hpp).
template <class Sigs>
class split_stop {
public:
    explicit split_stop(split_state_base<Sigs>& state) noexcept : state_(&state) {}
    void operator()() noexcept { state_->source.request_stop(); }  // *state_ may be gone

private:
    split_state_base<Sigs>* state_;
};

// Counts as one holder of a state.
template <class Sigs>
class split_handle {
public:
    explicit split_handle(split_state_base<Sigs>& state) noexcept : state_(&state) {}
    split_handle(const split_handle& other) noexcept : state_(other.state_) {
        if (state_ != nullptr) state_->hold();
    }
    split_handle(split_handle&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    split_handle& operator=(split_handle other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    ~split_handle() {
        if (state_ != nullptr) state_->release();
    }
    split_state_base<Sigs>* operator->() const noexcept { return state_; }
    split_state_base<Sigs>& operator*() const noexcept { return *state_; }

private:
    split_state_base<Sigs>* state_;
};

template <class Sigs, class Rcvr>
class split_operation final : split_meeting::consumer {
public:
    using operation_state_concept = operation_state_tag;

    split_operation(split_handle<Sigs> state, Rcvr rcvr) noexcept
        : rcvr_(static_cast<Rcvr&&>(rcvr)), state_(static_cast<split_handle<Sigs>&&>(state)) {}

    split_operation(split_operation&&) = delete;
    ~split_operation() {
        COPPICE_CHECK(phase_ != phase::waiting,
                      "an operation of split was destroyed while it was running");
    }

    void start() & noexcept {
        COPPICE_CHECK(phase_ == phase::idle, "an operation of split was started twice");
        phase_ = phase::waiting;
        on_stop_.engage(get_stop_token(execution::get_env(rcvr_)), split_stop<Sigs>(*state_));
        switch (state_->add(*this)) {
            case split_meeting::added::first: {
                // *this may be destroyed before the child has started. start_child() holds the
                // state.
                split_state_base<Sigs>& state = *state_;
                state.start_child();
                break;
            }
            case split_meeting::added::later:
                break;  // *this may be gone
            case split_meeting::added::too_late:
                complete();
                break;
        }
    }

private:
    enum class phase : unsigned char { idle, waiting, over };

    void complete() noexcept override {
        on_stop_.reset();
        phase_ = phase::over;
        state_->result.deliver_copy(rcvr_);
    }

    [[no_unique_address]] Rcvr rcvr_;
    split_handle<Sigs> state_;
    [[no_unique_address]] stop_registration<stop_token_of_t<env_of_t<Rcvr>>, split_stop<Sigs>>
        on_stop_;
    phase phase_ = phase::idle;  // written before add(), and by the completing thread
};

// Copyable. Decomposes as [tag, data].
template <class Sigs>
struct split_sender {
    using sender_concept = sender_tag;
    using tag_type = split_t;
    using decomposable = void;

    split_handle<Sigs> data;

    explicit split_sender(split_state_base<Sigs>& state) noexcept : data(state) {}

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return typename split_signatures<Sigs>::type();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && noexcept -> split_operation<Sigs, Rcvr> {
        return {static_cast<split_handle<Sigs>&&>(data), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) const& noexcept -> split_operation<Sigs, Rcvr> {
        return {data, static_cast<Rcvr&&>(rcvr)};
    }
};

// Makes sndr shareable. The child's environment has only a stop token.
template <sender Sndr>
auto split_t::operator()(Sndr&& sndr) const {
    using Child = std::decay_t<Sndr>;
    using Sigs = split_stored_t<Child>;
    if constexpr (!is_completion_signatures<Sigs>) {
        static_assert(internal::diagnosis<Sigs>::reported);
    } else if constexpr (!is_completion_signatures<typename split_signatures<Sigs>::type>) {
        static_assert(internal::diagnosis<typename split_signatures<Sigs>::type>::reported);
    } else {
        auto allocator = execution::choose_allocator(sndr, env<>());
        using state = split_state<Child, decltype(allocator)>;
        return split_sender<Sigs>(*execution::internal::new_with<state>(
            allocator, allocator, Child(static_cast<Sndr&&>(sndr))));
    }
}
inline constexpr split_t split{};

}  // namespace coppice::execution
