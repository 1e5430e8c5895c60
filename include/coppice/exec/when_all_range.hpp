// when_all_range: when_all for a vector of senders, whose count is known when the program runs.
#pragma once
// Sends nothing if the senders send nothing, and otherwise one vector of what they sent, in their
// order: of the values, or of tuples if each sends several. The first error or stop asks the others
// to stop, as in when_all. An empty vector completes at once.
//
//   pending_   children that have not arrived, and the starter; the last one completes
//   outcome_   how it ends: see when_all_outcome
//
// Source: ours. Cost: one allocation when it is connected, for all operations, and one for the
// vector that is sent; from the environment's allocator.

#include <coppice/base/atomic.hpp>
#include <coppice/base/check.hpp>
#include <coppice/exec/allocate.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/stop/inplace.hpp>

#include <vector>

namespace coppice::execution {

struct when_all_range_t;

// What is sent for children that each send a product of values.
template <class Product>
struct range_result;
template <>
struct range_result<product<>> {
    using sent = completion_signatures<set_value_t()>;
    static constexpr bool sends_vector = false;
};
template <class T>
struct range_result<product<T>> {
    using element = T;
    using sent = completion_signatures<set_value_t(std::vector<T>)>;
    static constexpr bool sends_vector = true;
    static T&& of(product<T>& values) noexcept { return std::move(values.template get<0>()); }
};
template <class T, class U, class... Ts>
struct range_result<product<T, U, Ts...>> {
    using element = std::tuple<T, U, Ts...>;
    using sent = completion_signatures<set_value_t(std::vector<element>)>;
    static constexpr bool sends_vector = true;
    static element of(product<T, U, Ts...>& values) {
        return std::move(values).apply([](auto&&... each) { return element(std::move(each)...); });
    }
};

template <class Sigs>
struct range_signatures {
    using child = when_all_child<Sigs>;
    template <class Values>
    struct of {  // never sends values
        using product_type = product<>;
        using sent = completion_signatures<set_value_t()>;  // an empty range does
    };
    template <class Product>
    struct of<type_list<Product>> {
        using product_type = Product;
        using sent = typename range_result<Product>::sent;
    };
    using values = of<typename child::values>;
    // Moving the values together may throw, and so may the vector if the range was copied.
    static constexpr bool throws = !std::is_same_v<typename values::product_type, product<>>;
    using type = signatures_union_t<typename values::sent, typename child::failures,
                                    exception_signature<throws>>;
};

template <class Env>
using range_env_t = stop_token_env<inplace_stop_token, Env>;

template <class Sndr, class Rcvr>
class when_all_range_operation {
    using Env = env_of_t<const Rcvr&>;
    using Sigs =
        typename range_signatures<completion_signatures_of_t<Sndr, range_env_t<Env>>>::type;
    using values_type =
        typename range_signatures<completion_signatures_of_t<Sndr, range_env_t<Env>>>::values;
    using product_type = typename values_type::product_type;

public:
    using operation_state_concept = operation_state_tag;

    struct child;
    class child_receiver {
    public:
        using receiver_concept = receiver_tag;
        explicit child_receiver(child& c) noexcept : child_(&c) {}
        template <class... Args>
        void set_value(Args&&... args) && noexcept {
            child_->op->value(*child_, static_cast<Args&&>(args)...);
        }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            child_->op->failed(static_cast<Error&&>(error));
        }
        void set_stopped() && noexcept { child_->op->stopped(); }
        range_env_t<Env> get_env() const noexcept {
            return range_env_t<Env>(child_->op->source_.get_token(),
                                    execution::get_env(std::as_const(child_->op->rcvr_)));
        }

    private:
        child* child_;
    };
    struct child : immovable {
        child(when_all_range_operation& owner, Sndr&& sndr)
            : op(&owner),
              operation(execution::connect(static_cast<Sndr&&>(sndr), child_receiver(*this))) {}
        when_all_range_operation* op;
        when_all_slot<product_type> slot;
        connect_result_t<Sndr, child_receiver> operation;
    };

    when_all_range_operation(std::vector<Sndr>&& sndrs, Rcvr rcvr)
        : rcvr_(static_cast<Rcvr&&>(rcvr)), pending_(sndrs.size() + 1) {
        if (sndrs.empty()) return;
        auto allocator = child_allocator();
        children_ = child_traits::allocate(allocator, sndrs.size());
        capacity_ = sndrs.size();
        scope_exit undo([this] { destroy_children(); });
        for (Sndr& sndr : sndrs) {
            ::new (static_cast<void*>(children_ + count_)) child(*this, static_cast<Sndr&&>(sndr));
            ++count_;
        }
        undo.dismiss();
    }
    when_all_range_operation(when_all_range_operation&&) = delete;
    ~when_all_range_operation() {
        // relaxed: whoever destroys this knows in another way that it has completed, or is wrong
        COPPICE_CHECK(!started_ || pending_.load(relaxed) == 0,
                      "an operation of when_all_range was destroyed while it was running");
        destroy_children();
    }

    void start() & noexcept {
        COPPICE_CHECK(!started_, "an operation of when_all_range was started twice");
        started_ = true;
        on_stop_.engage(get_stop_token(execution::get_env(rcvr_)), request_stop_of(source_));
        for (std::size_t i = 0; i != count_; ++i) execution::start(children_[i].operation);
        arrive();  // may end this
    }

private:
    using allocator_type =
        decltype(execution::choose_allocator(std::declval<const env<>&>(), std::declval<Env>()));
    using child_traits =
        typename std::allocator_traits<allocator_type>::template rebind_traits<child>;

    typename child_traits::allocator_type child_allocator() const noexcept {
        return typename child_traits::allocator_type(
            execution::choose_allocator(env<>(), execution::get_env(rcvr_)));
    }
    void destroy_children() noexcept {
        while (count_ != 0) children_[--count_].~child();
        if (capacity_ == 0) return;
        auto allocator = child_allocator();
        child_traits::deallocate(allocator, children_, capacity_);
    }

    template <class... Args>
    void value(child& c, Args&&... args) noexcept {
        if constexpr (nothrow_decay_copyable<Args...>) {
            c.slot.keep(static_cast<Args&&>(args)...);
        } else {
            try {
                c.slot.keep(static_cast<Args&&>(args)...);
            } catch (...) {
                failed(std::current_exception());
                return;
            }
        }
        arrive();
    }
    template <class Error>
    void failed(Error&& error) noexcept {
        if (outcome_.fail(static_cast<Error&&>(error))) source_.request_stop();
        arrive();
    }
    void stopped() noexcept {
        if (outcome_.stop()) source_.request_stop();
        arrive();
    }
    void arrive() noexcept {
        // edge when_all_range.arrive (release), edge when_all_range.arrive (acquire): sees all
        if (pending_.fetch_sub(1, acq_rel) != 1) return;
        on_stop_.reset();
        if (outcome_.all_sent()) {
            send_values();
        } else {
            outcome_.deliver(rcvr_);
        }
    }
    void send_values() noexcept {
        using result = range_result<product_type>;
        if constexpr (!result::sends_vector) {
            set_value(static_cast<Rcvr&&>(rcvr_));
        } else {
            try {
                std::vector<typename result::element> all;
                all.reserve(count_);
                for (std::size_t i = 0; i != count_; ++i) {
                    all.push_back(result::of(children_[i].slot.values()));
                }
                set_value(static_cast<Rcvr&&>(rcvr_), std::move(all));
            } catch (...) {
                set_error(static_cast<Rcvr&&>(rcvr_), std::current_exception());
            }
        }
    }

    [[no_unique_address]] Rcvr rcvr_;
    inplace_stop_source source_;
    atomic<std::size_t> pending_;
    when_all_outcome<Sigs> outcome_;
    bool started_ = false;
    child* children_ = nullptr;
    std::size_t capacity_ = 0;
    std::size_t count_ = 0;
    [[no_unique_address]] stop_registration<stop_token_of_t<env_of_t<Rcvr>>,
                                            request_stop_of<inplace_stop_source>> on_stop_;
};

struct when_all_range_t {
    template <sender Sndr>
    auto operator()(std::vector<Sndr> sndrs) const;
};

// Decomposes as [tag, data]: data is the vector.
template <class Sndr>
struct when_all_range_sender {
    using sender_concept = sender_tag;
    using tag_type = when_all_range_t;
    using decomposable = void;

    std::vector<Sndr> data;

    explicit when_all_range_sender(std::vector<Sndr>&& sndrs) noexcept : data(std::move(sndrs)) {}

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Sigs = signatures_of<Sndr, range_env_t<Env>...>;
        return typename range_signatures<Sigs>::type();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && -> when_all_range_operation<Sndr, Rcvr> {
        return {std::move(data), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Sndr>
    auto connect(Rcvr rcvr) const& -> when_all_range_operation<Sndr, Rcvr> {
        return {std::vector<Sndr>(data), static_cast<Rcvr&&>(rcvr)};
    }
};

// Runs all senders at once. Errors: what allocating throws, out of connect.
template <sender Sndr>
auto when_all_range_t::operator()(std::vector<Sndr> sndrs) const {
    using result = when_all_range_sender<Sndr>;
    static_assert(pipeline_check<result>::done);
    return result(std::move(sndrs));
}
inline constexpr when_all_range_t when_all_range{};

}  // namespace coppice::execution
