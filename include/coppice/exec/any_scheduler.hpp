// any_scheduler: a scheduler of any type; for interfaces.
#pragma once
// Holds any scheduler whose schedule can only be stopped, not fail. Copies of small schedulers
// allocate nothing, and neither does scheduling if the operation is small. Source: ours.

#include <coppice/base/check.hpp>
#include <coppice/exec/any_sender.hpp>

namespace coppice::execution {

class any_scheduler {
    using schedule_receiver = any_receiver<set_value_t(), set_stopped_t()>;

    class concept_base;
    using storage_type = small_object<concept_base, 4 * sizeof(void*)>;
    class concept_base {
    public:
        virtual ~concept_base() = default;
        virtual void relocate(storage_type& to) noexcept = 0;
        virtual void copy_to(storage_type& to) const = 0;
        virtual bool equals(const concept_base& other) const noexcept = 0;
        virtual const void* type() const noexcept = 0;
        virtual const void* scheduler() const noexcept = 0;
        virtual forward_progress_guarantee progress() const noexcept = 0;
        virtual void schedule_into(any_operation_storage& storage,
                                   schedule_receiver rcvr) const = 0;
    };
    // Tells types apart.
    template <class Sch>
    static constexpr char type_mark = 0;

    template <class Sch>
    class model final : public concept_base {
    public:
        explicit model(Sch sch) noexcept : sch_(static_cast<Sch&&>(sch)) {}
        void relocate(storage_type& to) noexcept override {
            to.template emplace_with<model>([this] { return model(static_cast<Sch&&>(sch_)); });
        }
        void copy_to(storage_type& to) const override {
            to.template emplace_with<model>([this] { return model(Sch(sch_)); });
        }
        bool equals(const concept_base& other) const noexcept override {
            return other.type() == type() && *static_cast<const Sch*>(other.scheduler()) == sch_;
        }
        const void* type() const noexcept override { return &type_mark<Sch>; }
        const void* scheduler() const noexcept override { return &sch_; }
        forward_progress_guarantee progress() const noexcept override {
            return get_forward_progress_guarantee(sch_);
        }
        void schedule_into(any_operation_storage& storage, schedule_receiver rcvr) const override {
            using sender_type = schedule_result_t<const Sch&>;
            using operation = any_connected<sender_type, schedule_receiver>;
            storage.emplace_with<operation>(
                [&] { return operation(execution::schedule(sch_), rcvr); });
        }

    private:
        Sch sch_;
    };

public:
    using scheduler_concept = scheduler_tag;

    // Holds a copy of `sch`. Errors: what copying it, and allocation, throw.
    // Cost: an allocation if it takes more than three pointers.
    template <class Sch>
        requires(!std::same_as<std::decay_t<Sch>, any_scheduler>) &&
                infallible_scheduler<std::decay_t<Sch>, any_env>
    any_scheduler(Sch&& sch) {
        using holder = model<std::decay_t<Sch>>;
        sch_.template emplace_with<holder>(
            [&] { return holder(std::decay_t<Sch>(static_cast<Sch&&>(sch))); });
    }
    any_scheduler(const any_scheduler& other) {
        if (other.sch_.get() != nullptr) other.sch_.get()->copy_to(sch_);
    }
    any_scheduler(any_scheduler&&) noexcept = default;
    any_scheduler& operator=(const any_scheduler& other) {
        if (this != &other) *this = any_scheduler(other);
        return *this;
    }
    any_scheduler& operator=(any_scheduler&&) noexcept = default;

    class sender;
    sender schedule() const;
    forward_progress_guarantee query(get_forward_progress_guarantee_t) const noexcept {
        return sch_.get()->progress();
    }
    friend bool operator==(const any_scheduler& a, const any_scheduler& b) noexcept {
        return a.sch_.get()->equals(*b.sch_.get());
    }
    // Whether a holds a scheduler equal to b.
    template <class Sch>
        requires(!std::same_as<Sch, any_scheduler>) && coppice::execution::scheduler<Sch>
    friend bool operator==(const any_scheduler& a, const Sch& b) noexcept {
        return a.sch_.get()->type() == &type_mark<Sch> &&
               *static_cast<const Sch*>(a.sch_.get()->scheduler()) == b;
    }

private:
    storage_type sch_;
};

// Completes on the scheduler. Holds a copy of it.
class any_scheduler::sender {
public:
    using sender_concept = sender_tag;
    explicit sender(const any_scheduler& sch) : sch_(sch) {}

    class attrs {
    public:
        explicit attrs(const any_scheduler& sch) noexcept : sch_(&sch) {}
        template <class Tag>
            requires(!std::is_same_v<Tag, set_error_t>)
        any_scheduler query(get_completion_scheduler_t<Tag>) const noexcept {
            return *sch_;
        }

    private:
        const any_scheduler* sch_;
    };
    attrs get_env() const noexcept { return attrs(sch_); }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        if constexpr (sizeof...(Env) != 0 && (unstoppable_token<stop_token_of_t<Env>> && ...)) {
            return completion_signatures<set_value_t()>();
        } else {
            return completion_signatures<set_value_t(), set_stopped_t()>();
        }
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) const {
        using Sent = decltype(get_completion_signatures<sender, env_of_t<Rcvr>>());
        return any_sender_operation<Rcvr, Sent, set_value_t(), set_stopped_t()>(
            [this](any_operation_storage& storage, schedule_receiver erased) {
                sch_.sch_.get()->schedule_into(storage, erased);
            },
            static_cast<Rcvr&&>(rcvr));
    }

private:
    any_scheduler sch_;
};

inline any_scheduler::sender any_scheduler::schedule() const {
    return sender(*this);
}

}  // namespace coppice::execution
