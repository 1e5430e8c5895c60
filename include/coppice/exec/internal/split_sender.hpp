// The sender of split: one of the holders of the shared state.
#pragma once

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/internal/split_state.hpp>
#include <coppice/exec/internal/stop_registration.hpp>

namespace coppice::execution {
struct split_t;
}

namespace coppice::execution::internal {

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
    using shared = set_insert_t<completion_signatures<>, typename split_signature<Fns>::type...>;
    using complete =
        std::conditional_t<(stores_results_nothrow<Fns> && ...), shared,
                           set_insert_t<shared, set_error_t(const std::exception_ptr&)>>;
    using type = std::conditional_t<
        (stores_results<Fns> && ...), set_insert_t<complete, set_stopped_t()>,
        pipeline_error<in_algorithm<split_t>, got<Fns...>, wanted<decay_copyable_results>>>;
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

template <class Sigs, class Rcvr>
class split_operation final : split_meeting::consumer {
public:
    using operation_state_concept = operation_state_tag;

    split_operation(split_handle<Sigs> state, Rcvr rcvr) noexcept
        : rcvr_(static_cast<Rcvr&&>(rcvr)), state_(static_cast<split_handle<Sigs>&&>(state)) {}

    split_operation(split_operation&&) = delete;
    ~split_operation() {
        COPPICE_CHECK(
            phase_ != phase::waiting,
            "an operation of split was destroyed while it was running: keep it until it completes");
    }

    void start() & noexcept {
        COPPICE_CHECK(phase_ == phase::idle,
                      "an operation of split was started twice: connect its sender again");
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

}  // namespace coppice::execution::internal
