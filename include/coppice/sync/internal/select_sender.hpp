// select_sender: the object that select and select_range return, and the places of its branches.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/internal/allocate.hpp>
#include <coppice/sync/internal/select_branches.hpp>
#include <coppice/sync/internal/select_operation.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace coppice::internal {

template <class Op, class Provider>
using select_branch_t = typename select_operand<Op>::template branch<Provider>;

template <std::size_t Index, class Branch>
struct branch_at {
    Branch branch;
};

// The branches of select, in the order of its arguments.
template <class Indices, class... Branches>
class branch_pack;
template <std::size_t... Is, class... Branches>
class branch_pack<std::index_sequence<Is...>, Branches...> : immovable, branch_at<Is, Branches>... {
public:
    using result = std::variant<typename Branches::result...>;

    template <class Operands, class Core, class Provider>
    branch_pack(Operands&& operands, Core& core, const Provider& provider)
        : branch_at<Is, Branches>{
              {std::get<Is>(std::move(operands.ops)), core, provider, std::uint32_t{Is}}}... {}

    static constexpr bool is_empty() noexcept { return false; }
    // Returns f(branch, make) of the branch with that number. make() makes the result.
    template <class R, class F>
    R visit(std::uint32_t number, F f) {
        using function = R(branch_pack&, F&);
        static constexpr function* table[] = {&branch_pack::visit_at<Is, Branches, R, F>...};
        return table[number](*this, f);
    }

private:
    template <std::size_t I, class Branch, class R, class F>
    static R visit_at(branch_pack& self, F& f) {
        Branch& branch = static_cast<branch_at<I, Branch>&>(self).branch;
        return f(branch, [&branch] { return result(std::in_place_index<I>, branch.take()); });
    }
};

template <class... Results>
struct pack_results {
    using result = std::variant<typename Results::result...>;
    using errors = execution::internal::signatures_union_t<typename Results::errors...>;
    static constexpr bool may_stop = (Results::may_stop || ...);
};

// True for the operations of this room that can look for longer.
template <class Kept>
inline constexpr bool looks_for_longer = requires { requires Kept::has_soon; };

template <class... Ops>
struct select_pack {
    static constexpr char name[] = "select";
    static constexpr bool joins = (select_operand<Ops>::is_sender || ...);
    static constexpr std::uint32_t room_count =
        (std::uint32_t{!select_operand<Ops>::is_sender} + ...);
    static constexpr std::uint32_t size = sizeof...(Ops);
    using kept = std::tuple<typename select_operand<Ops>::kept...>;
    template <class Provider>
    using branches =
        branch_pack<std::index_sequence_for<Ops...>, select_branch_t<Ops, Provider>...>;
    // The signatures of the branches that are other senders; or an error.
    template <class... Env>
    using child_signatures = execution::internal::signatures_union_t<
        typename select_operand<Ops>::template signatures<Env...>...>;
    template <class... Env>
    using results = pack_results<typename select_operand<Ops>::template results<Env...>...>;

    // Tries the operations of this room without waiting, in a random order. If none is ready, the
    // first one that can looks for longer. Returns the number of the one that succeeded, or `size`.
    // random(n) returns a number below `n`.
    template <class Random>
    std::uint32_t take_ready(Random random) noexcept {
        std::uint32_t left[room_count];
        std::uint32_t count = 0;
        std::uint32_t number = 0;
        std::uint32_t looking = size;
        (void((select_operand<Ops>::is_sender ? 0 : (left[count++] = number), ++number)), ...);
        while (count != 0) {
            std::uint32_t& chosen = left[random(count)];
            if (try_at(chosen, std::index_sequence_for<Ops...>())) return chosen;
            if (looking == size && has_soon[chosen]) looking = chosen;
            chosen = left[--count];
        }
        if (looking != size && look_at(looking, std::index_sequence_for<Ops...>())) return looking;
        return size;
    }
    // Returns the result of the operation that succeeded, or throws its error.
    template <class Result>
    Result take(std::uint32_t number) {
        return take<Result>(number, std::index_sequence_for<Ops...>());
    }

    kept ops;

private:
    // True if all are operations of this room and of one type. Then the number picks an address and
    // not a branch of the code: no processor can predict a branch on a random number. It saves no
    // instructions. But with four ready channels a select takes 40 % longer without it, and with
    // two up to 8 %.
    using first_kept = std::tuple_element_t<0, kept>;
    static constexpr bool are_alike =
        room_count == size &&
        (std::is_same_v<first_kept, typename select_operand<Ops>::kept> && ...);

    template <std::size_t... Is>
    first_kept& at(std::uint32_t number, std::index_sequence<Is...>) noexcept {
        first_kept* const places[] = {&std::get<Is>(ops)...};
        return *places[number];
    }
    template <std::size_t... Is>
    bool try_at(std::uint32_t number, std::index_sequence<Is...> all) noexcept {
        if constexpr (are_alike) {
            return at(number, all).try_now();
        } else {
            return ((Is == number && try_one<Is>()) || ...);
        }
    }
    template <std::size_t... Is>
    bool look_at(std::uint32_t number, std::index_sequence<Is...>) noexcept {
        return ((Is == number && look_one<Is>()) || ...);
    }
    template <std::size_t I>
    bool try_one() noexcept {
        if constexpr (requires { std::get<I>(ops).try_now(); }) {
            return std::get<I>(ops).try_now();
        } else {
            return false;
        }
    }
    template <std::size_t I>
    bool look_one() noexcept {
        if constexpr (has_soon[I]) {
            return std::get<I>(ops).try_soon();
        } else {
            return false;
        }
    }
    static constexpr bool has_soon[] = {looks_for_longer<typename select_operand<Ops>::kept>...};

    template <class Result, std::size_t... Is>
    Result take(std::uint32_t number, std::index_sequence<Is...> all) {
        if constexpr (are_alike) {
            first_kept& operand = at(number, all);
            if (operand.failed()) [[unlikely]]
                operand.throw_error();
            return take_as<Result, 0>(number, operand);
        }
        using function = Result(select_pack&);
        static constexpr function* table[] = {&select_pack::template take_one<Result, Is>...};
        return table[number](*this);
    }
    // A case for each index, because the index of a variant's alternative is a constant.
    template <class Result, std::size_t I>
    static Result take_as(std::uint32_t number, first_kept& operand) {
        if constexpr (I + 1 < size) {
            if (number != I) return take_as<Result, I + 1>(number, operand);
        }
        return Result(std::in_place_index<I>, operand.take());
    }
    template <class Result, std::size_t I>
    static Result take_one(select_pack& self) {
        if constexpr (requires { std::get<I>(self.ops).try_now(); }) {
            auto& operand = std::get<I>(self.ops);
            if (operand.failed()) operand.throw_error();
            return Result(std::in_place_index<I>, operand.take());
        } else {
            __builtin_unreachable();
        }
    }
};

// The branches of select_range, in one allocation.
template <class Op, class Provider>
class branch_array : immovable {
    using branch_type = select_branch_t<Op, Provider>;
    using allocator_type = decltype(execution::internal::choose_allocator(
        std::declval<const execution::env<>&>(), std::declval<const Provider&>().get_env()));
    using traits =
        typename std::allocator_traits<allocator_type>::template rebind_traits<branch_type>;

public:
    using result = std::pair<std::size_t, typename branch_type::result>;

    template <class Operands, class Core>
    branch_array(Operands&& operands, Core& core, const Provider& provider)
        : allocator_(execution::internal::choose_allocator(execution::env<>(), provider.get_env())),
          capacity_(operands.ops.size()) {
        if (capacity_ == 0) return;
        branches_ = traits::allocate(allocator_, capacity_);
        scope_exit undo([this] { destroy(); });
        for (Op& op : operands.ops) {
            ::new (static_cast<void*>(branches_ + count_))
                branch_type(std::move(op), core, provider, static_cast<std::uint32_t>(count_));
            ++count_;
        }
        undo.dismiss();
    }
    ~branch_array() { destroy(); }

    bool is_empty() const noexcept { return count_ == 0; }
    template <class R, class F>
    R visit(std::uint32_t number, F f) {
        branch_type& branch = branches_[number];
        return f(branch, [&branch, number] { return result(number, branch.take()); });
    }

private:
    void destroy() noexcept {
        while (count_ != 0) branches_[--count_].~branch_type();
        if (capacity_ != 0) traits::deallocate(allocator_, branches_, capacity_);
    }

    [[no_unique_address]] typename traits::allocator_type allocator_;
    branch_type* branches_ = nullptr;
    std::size_t capacity_;
    std::size_t count_ = 0;
};

template <class Results>
struct range_results {
    using result = std::pair<std::size_t, typename Results::result>;
    using errors = typename Results::errors;
    static constexpr bool may_stop = Results::may_stop;
};

template <class Op>
struct select_vector {
    static constexpr char name[] = "select_range";
    static constexpr std::uint32_t room_count = 0;  // none is tried before the branches are made
    static constexpr bool joins = select_operand<Op>::is_sender;
    template <class Provider>
    using branches = branch_array<Op, Provider>;
    template <class... Env>
    using child_signatures = typename select_operand<Op>::template signatures<Env...>;
    template <class... Env>
    using results = range_results<typename select_operand<Op>::template results<Env...>>;

    std::vector<Op> ops;
};

// Adds to the results what the select itself may end with.
template <class Results, bool may_stop>
using select_signatures = execution::internal::signatures_union_t<
    execution::completion_signatures<execution::set_value_t(typename Results::result),
                                     execution::set_error_t(std::error_code)>,
    typename Results::errors,
    execution::internal::exception_signature<
        !std::is_nothrow_move_constructible_v<typename Results::result>>,
    std::conditional_t<may_stop || Results::may_stop,
                       execution::completion_signatures<execution::set_stopped_t()>,
                       execution::completion_signatures<>>>;

// Awaited or connected once. Threads: one at a time.
template <class Operands>
class [[nodiscard("await it or connect it: it has not begun")]] select_sender {
public:
    using sender_concept = execution::sender_tag;
    using keeps_scheduler = void;  // its awaiter brings the task back

    explicit select_sender(Operands&& operands) noexcept
        : operands_(static_cast<Operands&&>(operands)) {}

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        if constexpr (Operands::joins && sizeof...(Env) == 0) {
            return execution::internal::dependent_signatures();
        } else {
            using children = typename Operands::template child_signatures<Env...>;
            if constexpr (execution::is_completion_signatures<children>) {
                return select_signatures<typename Operands::template results<Env...>,
                                         (may_be_stopped<Env> && ...)>();
            } else {
                return children();
            }
        }
    }
    template <execution::receiver Rcvr>
    auto connect(Rcvr rcvr) && {
        return select_operation<Operands, Rcvr>(static_cast<Operands&&>(operands_),
                                                static_cast<Rcvr&&>(rcvr));
    }
    template <has_task_context Promise>
    auto as_awaitable(Promise& promise) && {
        if constexpr (Operands::room_count != 0) {
            return select_awaiter<Operands, Promise>(static_cast<Operands&&>(operands_), promise);
        } else {
            return select_wait<Operands, Promise>(static_cast<Operands&&>(operands_), promise);
        }
    }
    select_plain_awaiter<Operands> operator co_await() && {
        return select_plain_awaiter<Operands>(static_cast<Operands&&>(operands_));
    }

private:
    Operands operands_;
};

}  // namespace coppice::internal
