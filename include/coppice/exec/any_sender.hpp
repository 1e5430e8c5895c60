// any_sender: a sender of any type with given completion signatures; for interfaces.
#pragma once
// The sender is kept in a small buffer, and so is its operation once connected; each goes to the
// heap if it does not fit. Two parts of the receiver's environment pass through the erased
// interface: the stop token, as an inplace_stop_token, and the deadline. A linked_stop converts a
// stop token of another type. Move-only. Source: ours.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/internal/linked_stop.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/stop/inplace.hpp>

#include <cstddef>
#include <new>

namespace coppice::execution {

namespace internal {

// Holds one object derived from Base: in place if it fits into Size bytes, otherwise on the heap.
template <class Base, std::size_t Size>
class small_object {
public:
    small_object() noexcept = default;
    small_object(small_object&& other) noexcept { take(other); }
    small_object& operator=(small_object&& other) noexcept {
        if (this != &other) {
            reset();
            take(other);
        }
        return *this;
    }
    ~small_object() { reset(); }

    template <class T>
    static constexpr bool fits = sizeof(T) <= Size && alignof(T) <= alignof(std::max_align_t);

    // Constructs a T from what make() returns. Cost: no allocation if fits<T> and MayBeInside,
    // which says that the object can be moved together with its holder.
    template <class T, bool MayBeInside = true, class Make>
    T& emplace_with(Make&& make) {
        reset();
        T* made;
        if constexpr (fits<T> && MayBeInside) {
            made = ::new (static_cast<void*>(storage_)) T(make());
        } else {
            made = new T(make());
        }
        object_ = made;
        return *made;
    }
    // Takes an object on the heap, and destroys it later with `delete`.
    void adopt(Base* object) noexcept {
        reset();
        object_ = object;
    }
    void reset() noexcept {
        Base* const object = std::exchange(object_, nullptr);
        if (object == nullptr) return;
        if (is_inside(object)) {
            object->~Base();
        } else {
            delete object;
        }
    }
    Base* get() const noexcept { return object_; }

private:
    bool is_inside(const Base* object) const noexcept {
        const auto* const at = reinterpret_cast<const std::byte*>(object);
        return !(at < storage_) && at < storage_ + Size;
    }
    // A Base that is to be moved has relocate(small_object&), which move-constructs itself there.
    void take(small_object& other) noexcept {
        if (other.object_ == nullptr) return;
        if (other.is_inside(other.object_)) {
            other.object_->relocate(*this);
            other.reset();
        } else {
            object_ = std::exchange(other.object_, nullptr);
        }
    }

    alignas(std::max_align_t) std::byte storage_[Size];
    Base* object_ = nullptr;
};

}  // namespace internal

// A receiver's deadline, and its unwatched deadline, which no stop request enforces (deadline.hpp).
class any_deadline {
public:
    any_deadline(instant when, instant unwatched) noexcept : when_(when), unwatched_(unwatched) {}
    operator instant() const noexcept { return when_; }
    instant unwatched() const noexcept { return unwatched_; }

private:
    instant when_;
    instant unwatched_;
};

// The part of a receiver's environment that passes through the erased interface.
class any_env {
public:
    // Asks `of` for its deadline.
    template <class Env>
    any_env(inplace_stop_token token, const Env& of) noexcept
        : token_(token), deadline_(get_deadline(of), get_unwatched_deadline(of)) {}
    inplace_stop_token query(get_stop_token_t) const noexcept { return token_; }
    any_deadline query(get_deadline_t) const noexcept { return deadline_; }

private:
    inplace_stop_token token_;
    any_deadline deadline_;
};

template <class Signature>
class any_completion;
template <class Tag, class... Args>
class any_completion<Tag(Args...)> {
public:
    virtual void complete(Tag, Args&&... args) noexcept = 0;

protected:
    ~any_completion() = default;
};

// A receiver of any type. The concrete receiver derives from it.
template <class... Fns>
class any_receiver_base : public any_completion<Fns>... {
public:
    using any_completion<Fns>::complete...;
    virtual any_env get_any_env() const noexcept = 0;

protected:
    ~any_receiver_base() = default;
};

// True if Base can be completed with Tag(Args...): the arguments convert to one of its signatures.
// If the conversion may throw, Base also needs a signature that takes the exception.
template <class Base, bool SendsExceptions, class Tag, class... Args>
concept completes_erased = requires(Base& base, Args&&... args) {
    base.complete(Tag(), static_cast<Args&&>(args)...);
    requires SendsExceptions || noexcept(base.complete(Tag(), static_cast<Args&&>(args)...));
};

// The receiver that an erased sender is connected to.
template <class... Fns>
class any_receiver {
    using base_type = any_receiver_base<Fns...>;
    static constexpr bool sends_exceptions =
        internal::one_of<set_error_t(std::exception_ptr), Fns...>;

public:
    using receiver_concept = receiver_tag;
    explicit any_receiver(any_receiver_base<Fns...>& base) noexcept : base_(&base) {}
    template <class... Args>
        requires completes_erased<base_type, sends_exceptions, set_value_t, Args...>
    void set_value(Args&&... args) && noexcept {
        complete(set_value_t(), static_cast<Args&&>(args)...);
    }
    template <class Error>
        requires completes_erased<base_type, sends_exceptions, set_error_t, Error>
    void set_error(Error&& error) && noexcept {
        complete(set_error_t(), static_cast<Error&&>(error));
    }
    void set_stopped() && noexcept
        requires internal::one_of<set_stopped_t(), Fns...>
    {
        base_->complete(set_stopped_t());
    }
    any_env get_env() const noexcept { return base_->get_any_env(); }

private:
    // A conversion that throws does so before the completion.
    template <class Tag, class... Args>
    void complete(Tag tag, Args&&... args) noexcept {
        if constexpr (noexcept(base_->complete(tag, static_cast<Args&&>(args)...))) {
            base_->complete(tag, static_cast<Args&&>(args)...);
        } else {
            try {
                base_->complete(tag, static_cast<Args&&>(args)...);
            } catch (...) {
                base_->complete(set_error_t(), std::current_exception());
            }
        }
    }

    any_receiver_base<Fns...>* base_;
};

namespace internal {

// The result of the search below if no completion is missing.
struct nothing_missing {};
template <class Missing>
inline constexpr bool is_nothing_missing = std::is_same_v<Missing, nothing_missing>;
// Names, in the compiler's message, why an any_sender cannot hold a sender. Missing is the sender's
// first completion that is not among those of the any_sender and converts to none of them; or it is
// the exception_ptr completion that such a conversion needs.
template <class Missing>
concept any_sender_declares = is_nothing_missing<Missing>;

// Fn; or set_error_t(exception_ptr) if Fn converts and only the exception's signature is missing.
template <class Rcvr, class Fn>
struct missing_completion;
template <class... Fns, class Tag, class... Args>
struct missing_completion<any_receiver<Fns...>, Tag(Args...)> {
    static constexpr bool converts =
        completes_erased<any_receiver_base<Fns...>, true, Tag, Args...>;
    using type = std::conditional_t<converts, set_error_t(std::exception_ptr), Tag(Args...)>;
};
template <class Rcvr, class Sigs>
struct first_missing {
    using type = nothing_missing;
};
template <class Rcvr, class Fn, class... Fns>
struct first_missing<Rcvr, completion_signatures<Fn, Fns...>>
    : std::conditional_t<valid_completion_for<Fn, Rcvr>,
                         first_missing<Rcvr, completion_signatures<Fns...>>,
                         missing_completion<Rcvr, Fn>> {};
template <class Sndr, class Rcvr>
using first_missing_t = typename first_missing<Rcvr, signatures_of<Sndr, env_of_t<Rcvr>>>::type;

}  // namespace internal

class any_operation_base : immovable {
public:
    virtual ~any_operation_base() = default;
    virtual void start() noexcept = 0;
};
// Room for most leaf operations and short pipelines.
inline constexpr std::size_t any_operation_size = 128;
template <std::size_t Size>
using any_storage = internal::small_object<any_operation_base, sizeof(void*) + Size>;
using any_operation_storage = any_storage<any_operation_size>;

template <class Sndr, class Rcvr>
class any_connected final : public any_operation_base {
public:
    any_connected(Sndr&& sndr, Rcvr rcvr)
        : operation_(execution::connect(static_cast<Sndr&&>(sndr), static_cast<Rcvr&&>(rcvr))) {}
    void start() noexcept override { execution::start(operation_); }

private:
    connect_result_t<Sndr, Rcvr> operation_;
};

// A receiver's stop token as an inplace_stop_token. For a token of another type, a callback passes
// the stop on. Threads: listen(), then reset(), each once; reset() may run inside the callback.
template <class Token>
class inplace_token_of {
public:
    explicit inplace_token_of(const Token&) noexcept {}
    void listen(Token token) noexcept { link_.engage(static_cast<Token&&>(token)); }
    // Called before the receiver is completed. Blocks: while another thread passes a stop on.
    void reset() noexcept { link_.reset(); }
    inplace_stop_token get() const noexcept { return link_.token(); }

private:
    internal::linked_stop<inplace_stop_source, Token> link_;
};
template <>
class inplace_token_of<inplace_stop_token> {
public:
    explicit inplace_token_of(inplace_stop_token token) noexcept : token_(token) {}
    void listen(inplace_stop_token) noexcept {}
    void reset() noexcept {}
    inplace_stop_token get() const noexcept { return token_; }

private:
    inplace_stop_token token_;
};
template <unstoppable_token Token>
class inplace_token_of<Token> {
public:
    explicit inplace_token_of(Token) noexcept {}
    void listen(Token) noexcept {}
    void reset() noexcept {}
    inplace_stop_token get() const noexcept { return {}; }
};

// The concrete end of an erased connection: completes Rcvr. One level of derivation per signature.
template <class Derived, class Base, class... Fns>
class any_completions;
template <class Derived, class Base>
class any_completions<Derived, Base> : public Base {
protected:
    ~any_completions() = default;
};
template <class Derived, class Base, class Tag, class... Args, class... Fns>
class any_completions<Derived, Base, Tag(Args...), Fns...>
    : public any_completions<Derived, Base, Fns...> {
public:
    using any_completions<Derived, Base, Fns...>::complete;
    void complete(Tag tag, Args&&... args) noexcept override {
        static_cast<Derived*>(this)->finish(tag, static_cast<Args&&>(args)...);
    }

protected:
    ~any_completions() = default;
};

// Sent lists those of Fns that Rcvr may be completed with; the others cannot happen. Size is the
// room for the erased operation in bytes.
template <std::size_t Size, class Rcvr, class Sent, class... Fns>
class any_sender_operation final : any_completions<any_sender_operation<Size, Rcvr, Sent, Fns...>,
                                                   any_receiver_base<Fns...>, Fns...> {
    template <class, class, class...>
    friend class any_completions;

public:
    using operation_state_concept = operation_state_tag;

    // connect_into(storage, receiver) connects the erased sender there.
    template <class ConnectInto>
    any_sender_operation(ConnectInto&& connect_into, Rcvr rcvr)
        : rcvr_(static_cast<Rcvr&&>(rcvr)),
          token_(get_stop_token(execution::get_env(std::as_const(rcvr_)))) {
        connect_into(storage_, any_receiver<Fns...>(*this));
    }
    any_sender_operation(any_sender_operation&&) = delete;

    void start() & noexcept {
        token_.listen(get_stop_token(execution::get_env(rcvr_)));
        storage_.get()->start();
    }

private:
    template <class Tag, class... Args>
    void finish(Tag tag, Args&&... args) noexcept {
        token_.reset();
        if constexpr (std::is_same_v<internal::set_insert_t<Sent, Tag(Args...)>, Sent>) {
            tag(static_cast<Rcvr&&>(rcvr_), static_cast<Args&&>(args)...);
        }
    }
    any_env get_any_env() const noexcept override {
        return any_env(token_.get(), execution::get_env(rcvr_));
    }

    [[no_unique_address]] Rcvr rcvr_;
    inplace_token_of<stop_token_of_t<env_of_t<Rcvr>>> token_;
    any_storage<Size> storage_;
};

template <class Sigs>
class any_sender;

// A sender that completes with one of Fns. Holds any sender whose completions are among them, in an
// environment with an inplace_stop_token and a deadline. Values and errors convert to those of Fns.
// An exception from a conversion is sent as an exception_ptr; if Fns has no such signature, a
// sender whose conversions may throw is rejected at compile time.
// Cost: no allocation for a sender of up to sender_size bytes that moves without exceptions, else
// one; none for an operation of up to operation_size bytes, else one. Neither limit includes the
// pointer to the virtual functions.
// Lifetime: a moved-from any_sender can be assigned to and destroyed.
template <class... Fns>
class any_sender<completion_signatures<Fns...>> {
public:
    static constexpr std::size_t sender_size = 3 * sizeof(void*);
    static constexpr std::size_t operation_size = any_operation_size;

private:
    class concept_base;
    using storage_type = internal::small_object<concept_base, sizeof(void*) + sender_size>;
    class concept_base {
    public:
        virtual ~concept_base() = default;
        virtual void relocate(storage_type& to) noexcept = 0;
        virtual void connect_into(any_operation_storage& storage, any_receiver<Fns...> rcvr) = 0;
    };
    template <class Sndr>
    class model final : public concept_base {
    public:
        explicit model(Sndr&& sndr) noexcept(std::is_nothrow_move_constructible_v<Sndr>)
            : sndr_(static_cast<Sndr&&>(sndr)) {}
        void relocate(storage_type& to) noexcept override {
            to.template emplace_with<model>([this] { return model(static_cast<Sndr&&>(sndr_)); });
        }
        void connect_into(any_operation_storage& storage, any_receiver<Fns...> rcvr) override {
            using operation = any_connected<Sndr, any_receiver<Fns...>>;
            storage.emplace_with<operation>(
                [this, &rcvr] { return operation(static_cast<Sndr&&>(sndr_), rcvr); });
        }

    private:
        Sndr sndr_;
    };

public:
    using sender_concept = sender_tag;

    template <class Sndr>
        requires(!std::same_as<std::decay_t<Sndr>, any_sender>) &&
                sender_in<std::decay_t<Sndr>, any_env> &&
                internal::any_sender_declares<
                    internal::first_missing_t<std::decay_t<Sndr>, any_receiver<Fns...>>> &&
                sender_to<std::decay_t<Sndr>, any_receiver<Fns...>>
    any_sender(Sndr&& sndr) {
        using holder = model<std::decay_t<Sndr>>;
        constexpr bool moves = std::is_nothrow_move_constructible_v<std::decay_t<Sndr>>;
        sndr_.template emplace_with<holder, moves>(
            [&sndr] { return holder(std::decay_t<Sndr>(static_cast<Sndr&&>(sndr))); });
    }
    any_sender(any_sender&&) noexcept = default;
    any_sender& operator=(any_sender&&) noexcept = default;

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return completion_signatures<Fns...>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && {
        return any_sender_operation<operation_size, Rcvr, completion_signatures<Fns...>, Fns...>(
            [this](any_operation_storage& storage, any_receiver<Fns...> erased) {
                sndr_.get()->connect_into(storage, erased);
            },
            static_cast<Rcvr&&>(rcvr));
    }

private:
    storage_type sndr_;
};

}  // namespace coppice::execution
