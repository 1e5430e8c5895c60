// The types of a pipeline: of its items before each stage, and of the slots that hold them.
#pragma once

#include <coppice/exec/env.hpp>
#include <coppice/exec/internal/as_exception.hpp>
#include <coppice/exec/internal/start_race.hpp>
#include <coppice/exec/queries.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/exec/sender.hpp>
#include <coppice/exec/value_types.hpp>
#include <coppice/parallel/internal/namespaces.hpp>
#include <coppice/parallel/internal/pipeline_gates.hpp>
#include <coppice/stop/inplace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>

namespace coppice::parallel::internal {

enum class stage_kind { serial_in_order, serial, concurrent };
template <stage_kind Kind>
struct stage_tag {};

template <stage_kind Kind, class F>
struct pipeline_stage {
    static constexpr stage_kind kind = Kind;
    using function_type = F;
    F f;
};
template <class T>
inline constexpr bool is_stage = false;
template <stage_kind Kind, class F>
inline constexpr bool is_stage<pipeline_stage<Kind, F>> = true;

// The environment of a stage that waits: it continues where the pipeline runs.
template <class Sch>
struct stage_env {
    const Sch* sch;
    inplace_stop_token token;

    const Sch& query(execution::get_scheduler_t) const noexcept { return *sch; }
    const Sch& query(execution::get_start_scheduler_t) const noexcept { return *sch; }
    inplace_stop_token query(get_stop_token_t) const noexcept { return token; }
};

// The item that a stage's result makes: the result itself, or the value of the sender that it is.
template <class Result, class Env>
struct stage_output {
    static constexpr bool waits = false;
    using type = std::remove_cvref_t<Result>;
};
template <class Result, class Env>
    requires execution::sender<Result>
struct stage_output<Result, Env> {
    static constexpr bool waits = true;
    using type = std::remove_cvref_t<execution::single_sender_value_type<Result, Env>>;
};

// The types of the items from the source to the end: item<0> comes from the source.
template <std::size_t I, class Env, class Source, class... Stages>
struct pipeline_item {
    using stage = std::tuple_element_t<I - 1, std::tuple<Stages...>>;
    using before = typename pipeline_item<I - 1, Env, Source, Stages...>::type;
    using result = std::invoke_result_t<typename stage::function_type&, before>;
    using type = typename stage_output<result, Env>::type;
};
template <class T>
struct source_item {};
template <class T>
struct source_item<std::optional<T>> {
    using type = T;
};
template <class Source>
using source_item_t =
    typename source_item<std::remove_cvref_t<std::invoke_result_t<Source&>>>::type;
template <class Env, class Source, class... Stages>
struct pipeline_item<0, Env, Source, Stages...> {
    using type = source_item_t<Source>;
};

template <class T>
inline constexpr std::size_t item_size = sizeof(T);
template <>
inline constexpr std::size_t item_size<void> = 1;
template <class T>
inline constexpr std::size_t item_alignment = alignof(T);
template <>
inline constexpr std::size_t item_alignment<void> = 1;

// Room for one of several types.
template <class... T>
struct room_for {
    alignas(std::max({item_alignment<T>...})) unsigned char bytes[std::max({item_size<T>...})];
    template <class U>
    U& as() noexcept {
        return *std::launder(reinterpret_cast<U*>(bytes));
    }
};

// A slot for one item in flight.
struct slot_base : gate_waiter {
    void* core = nullptr;                  // the pipeline
    std::uint64_t number = 0;              // of the item, from 0
    bool holds_item = false;               // false once the item is destroyed
    bool was_stopped = false;              // the stage that waits has completed with set_stopped
    std::exception_ptr error;              // of the item; the slot gets no further item
    execution::internal::start_race race;  // of a stage that waits
};

// Returns how many slots of `size` bytes a pipeline makes for so many items. Errors: std::bad_alloc
// for more than there can be: new of an aligned type may round such a size up to 0.
inline std::size_t slots_to_make(std::size_t items, std::size_t size) {
    if (items > std::numeric_limits<std::ptrdiff_t>::max() / size) {
        throw std::bad_array_new_length();
    }
    return items == 0 ? 1 : items;
}

// The receiver of stage I's sender.
template <class Core, std::size_t I>
class stage_receiver {
public:
    using receiver_concept = execution::receiver_tag;
    stage_receiver(slot_base& slot, typename Core::env_type env) noexcept
        : slot_(&slot), env_(env) {}

    typename Core::env_type get_env() const noexcept { return env_; }
    template <class... Values>
    void set_value(Values&&... values) && noexcept {
        Core::template stage_value<I>(*slot_, static_cast<Values&&>(values)...);
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        Core::template stage_error<I>(
            *slot_, execution::internal::as_exception(static_cast<Error&&>(error)));
    }
    void set_stopped() && noexcept { Core::template stage_stopped<I>(*slot_); }

private:
    slot_base* slot_;
    typename Core::env_type env_;
};

// Receives the end of a pipeline, for the object that made it.
class pipeline_end {
public:
    virtual void ended() noexcept = 0;

protected:
    ~pipeline_end() = default;
};

}  // namespace coppice::parallel::internal
