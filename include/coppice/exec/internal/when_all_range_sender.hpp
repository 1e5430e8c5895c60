// The sender of when_all_range.
#pragma once
// The starter also arrives (join.hpp), so the operation outlives the loop that starts its children.
// when_all_outcome.hpp says how the operation ends.

#include <coppice/exec/internal/allocate.hpp>
#include <coppice/exec/internal/join.hpp>
#include <coppice/exec/internal/when_all_outcome.hpp>
#include <coppice/exec/internal/when_all_signatures.hpp>
#include <coppice/stop/inplace.hpp>

#include <tuple>
#include <vector>

namespace coppice::execution {
struct when_all_range_t;
}

namespace coppice::execution::internal {

// What is sent if each child sends a Product of values.
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
    struct of {  // for a child that never sends values
        using product_type = product<>;
        using sent = completion_signatures<set_value_t()>;  // sent by an empty range
    };
    template <class Product>
    struct of<type_list<Product>> {
        using product_type = Product;
        using sent = typename range_result<Product>::sent;
    };
    using values = of<typename child::values>;
    // Moving the values into the vector may throw; so may copying the range's vector.
    static constexpr bool throws = !std::is_same_v<typename values::product_type, product<>>;
    using type = signatures_union_t<typename values::sent, typename child::failures,
                                    exception_signature<throws>>;
};

template <class Env>
using range_env_t = stop_token_env<inplace_stop_token, Env>;

template <class Sndr, class Rcvr>
using range_signatures_for =
    range_signatures<completion_signatures_of_t<Sndr, range_env_t<env_of_t<const Rcvr&>>>>;

template <class Sndr, class Rcvr>
class when_all_range_operation
    : public when_all_join<when_all_range_operation<Sndr, Rcvr>, Rcvr, inplace_stop_source,
                           typename range_signatures_for<Sndr, Rcvr>::type> {
    using Env = env_of_t<const Rcvr&>;
    using product_type = typename range_signatures_for<Sndr, Rcvr>::values::product_type;

    struct child : join_child<when_all_range_operation, std::size_t, Sndr> {
        using base = join_child<when_all_range_operation, std::size_t, Sndr>;
        using base::base;
        when_all_slot<product_type> slot;
    };

public:
    using operation_state_concept = operation_state_tag;
    static constexpr char name[] = "when_all_range";

    when_all_range_operation(std::vector<Sndr>&& sndrs, Rcvr rcvr)
        : when_all_range_operation::when_all_join(static_cast<Rcvr&&>(rcvr), sndrs.size() + 1),
          allocator_(internal::choose_allocator(env<>(), execution::get_env(this->rcvr_))) {
        if (sndrs.empty()) return;
        children_ = child_traits::allocate(allocator_, sndrs.size());
        capacity_ = sndrs.size();
        scope_exit undo([this] { destroy_children(); });
        for (Sndr& sndr : sndrs) {
            ::new (static_cast<void*>(children_ + count_))
                child(static_cast<Sndr&&>(sndr), *this, count_);
            ++count_;
        }
        undo.dismiss();
    }
    when_all_range_operation(when_all_range_operation&&) = delete;
    ~when_all_range_operation() {
        this->check_over();
        destroy_children();
    }

    void start() & noexcept {
        this->begin();
        for (std::size_t i = 0; i != count_; ++i) execution::start(children_[i].operation);
        this->arrive();  // may destroy *this
    }

    range_env_t<Env> child_env(std::size_t) const noexcept {
        return range_env_t<Env>(this->source_.get_token(),
                                execution::get_env(std::as_const(this->rcvr_)));
    }
    template <class... Args>
    void value(std::size_t place, Args&&... args) noexcept {
        this->keep(children_[place].slot, static_cast<Args&&>(args)...);
    }
    void send_values() noexcept {
        using result = range_result<product_type>;
        if constexpr (!result::sends_vector) {
            set_value(static_cast<Rcvr&&>(this->rcvr_));
        } else {
            try {
                std::vector<typename result::element> all;
                all.reserve(count_);
                for (std::size_t i = 0; i != count_; ++i) {
                    all.push_back(result::of(children_[i].slot.values()));
                }
                set_value(static_cast<Rcvr&&>(this->rcvr_), std::move(all));
            } catch (...) {
                set_error(static_cast<Rcvr&&>(this->rcvr_), std::current_exception());
            }
        }
    }

private:
    using allocator_type =
        decltype(internal::choose_allocator(std::declval<const env<>&>(), std::declval<Env>()));
    using child_traits =
        typename std::allocator_traits<allocator_type>::template rebind_traits<child>;

    void destroy_children() noexcept {
        while (count_ != 0) children_[--count_].~child();
        if (capacity_ != 0) child_traits::deallocate(allocator_, children_, capacity_);
    }

    // Kept here, because the receiver has been moved from when the children are freed.
    [[no_unique_address]] typename child_traits::allocator_type allocator_;
    child* children_ = nullptr;
    std::size_t capacity_ = 0;
    std::size_t count_ = 0;
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

}  // namespace coppice::execution::internal
