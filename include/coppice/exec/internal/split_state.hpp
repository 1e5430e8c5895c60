// The shared state of split: the child's operation, its result, and the waiting consumers.
#pragma once
// The first consumer to start also starts the child. Each consumer gets the results as const
// lvalues. A stop request of any consumer reaches the child, through a tolerant_single_stop_source
// (P3409R1).
//
//   waiting_   nullptr | the newest of a list of consumers | done
//
//   add        nullptr -> the consumer, which then starts the child
//              a list -> a longer list
//              done -> stays; the result is stored, and the consumer completes at once
//   finish     -> done; the finishing thread completes every consumer of the list
//
// The holders of the state are counted: every sender and every operation, and the child while it
// runs. Source: P3409R1 5.5.1. Model: tests/model/split_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/allocate.hpp>
#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/stop/single.hpp>

namespace coppice::execution::internal {

// Collects the waiting consumers. Threads: any number of add(), one finish().
class split_meeting : immovable {
public:
    class consumer : immovable {
    public:
        virtual void complete() noexcept = 0;
        plain<consumer*> next{nullptr};  // written by add(), read by finish()

    protected:
        ~consumer() = default;
    };
    enum class added : unsigned char { first, later, too_late };

    // Returns first if the caller must start the child, later if complete() will be called, and
    // too_late if the result is stored.
    [[nodiscard]] added add(consumer& c) noexcept {
        // edge split.done (acquire): the result is stored
        consumer* seen = waiting_.load(acquire);
        do {
            if (seen == done()) return added::too_late;
            c.next.write(seen);
            // edge split.add (release), edge split.done (acquire): the consumer is linked
        } while (!waiting_.compare_exchange_weak(seen, &c, release, acquire));
        return seen == nullptr ? added::first : added::later;
    }
    // Called after the result is stored: completes all waiting consumers, which may destroy them.
    void finish() noexcept {
        // edge split.add (acquire), edge split.done (release): the consumers; the result is stored
        consumer* c = waiting_.exchange(done(), acq_rel);
        while (c != nullptr) {
            consumer* const following = c->next.read();
            c->complete();
            c = following;
        }
    }

    // relaxed: the caller's own share keeps the state
    void hold() noexcept { holders_.fetch_add(1, relaxed); }
    [[nodiscard]] bool let_go() noexcept {
        // edge split.let_go (release), edge split.let_go (acquire): the last sees all work
        return holders_.fetch_sub(1, acq_rel) == 1;
    }

private:
    // Returns an address that no consumer has.
    consumer* done() noexcept { return reinterpret_cast<consumer*>(this); }

    atomic<consumer*> waiting_{nullptr};  // see above; written by all threads
    atomic<std::size_t> holders_{1};
};

// The child's environment: only a stop token.
class split_env {
public:
    explicit split_env(single_inplace_stop_token token) noexcept : token_(token) {}
    single_inplace_stop_token query(get_stop_token_t) const noexcept { return token_; }

private:
    single_inplace_stop_token token_;
};

// The part of the state that consumers use.
template <class Sigs>
class split_state_base : public split_meeting {
public:
    tolerant_single_stop_source source;
    completion_store<Sigs> result;  // written by the child before finish()

    // Called when add() returned first.
    void start_child() noexcept {
        // The child's share. Until this call returns, the starter is a holder itself.
        if (!planted("split.start_unheld")) hold();
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
    void destroy() noexcept override { internal::delete_with(Allocator(allocator_), this); }

    [[no_unique_address]] Allocator allocator_;
    connect_result_t<Sndr, split_receiver<Sigs>> operation_;
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

}  // namespace coppice::execution::internal
