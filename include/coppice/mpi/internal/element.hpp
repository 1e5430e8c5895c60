// element: what a span holds, as MPI is told it.
#pragma once

#include <coppice/mpi/internal/namespaces.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

namespace coppice::mpi {

// What messages are made of: types whose bytes are their value. Pointers inside mean nothing to
// another process, so views such as std::string_view are not transferable.
template <class T>
concept transferable =
    std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::ranges::borrowed_range<T>;

}  // namespace coppice::mpi

namespace coppice::mpi::internal {

enum class element : std::uint8_t { raw, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, f80 };

template <class T>
inline constexpr bool is_character =
    std::is_same_v<T, char> || std::is_same_v<T, wchar_t> || std::is_same_v<T, char8_t> ||
    std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;

// Structs, bool, and characters travel as bytes: all processes must have one representation.
template <class T>
consteval element element_of() noexcept {
    if constexpr (std::is_same_v<T, float>) {
        return element::f32;
    } else if constexpr (std::is_same_v<T, double>) {
        return element::f64;
    } else if constexpr (std::is_same_v<T, long double>) {
        return element::f80;
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && !is_character<T> &&
                         sizeof(T) <= 8) {
        constexpr int first = static_cast<int>(std::is_signed_v<T> ? element::i8 : element::u8);
        constexpr int step = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
        return static_cast<element>(first + step);
    } else {
        return element::raw;
    }
}

// Memory with its type erased. `count` is in units of `type`, and `unit` is how many of these one
// object of the program has.
struct memory {
    void* data = nullptr;
    std::size_t count = 0;
    element type = element::raw;
    std::size_t unit = 1;
};

inline std::size_t size_in_bytes(const memory& m) noexcept {
    constexpr std::uint8_t sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, sizeof(long double)};
    return m.count * sizes[static_cast<int>(m.type)];
}

template <class T>
memory memory_of(std::span<T> objects) noexcept {
    using object = std::remove_const_t<T>;
    constexpr element type = element_of<object>();
    constexpr std::size_t unit = type == element::raw ? sizeof(object) : 1;
    constexpr std::size_t objects_max = std::numeric_limits<std::size_t>::max() / unit;
    const std::size_t count = objects.size();  // of a span that is no memory, it may be anything
    return {const_cast<object*>(objects.data()), (count < objects_max ? count : objects_max) * unit,
            type, unit};
}

// Gives a vector the size of what is received; false: no memory.
template <class T>
bool resize_vector(void* container, std::size_t count, memory& into) noexcept {
    std::vector<T>& v = *static_cast<std::vector<T>*>(container);
    try {
        v.resize(count);
    } catch (const std::exception&) {
        return false;
    }
    into = memory_of(std::span<T>(v));
    return true;
}

// A container that outlives the call, or a span.
template <class Range>
concept lasting_range = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
                        std::ranges::borrowed_range<Range>;
template <class Range>
using object_of = std::remove_reference_t<std::ranges::range_reference_t<Range>>;

template <class Range>
auto span_of(Range&& range) noexcept {
    return std::span<object_of<Range>>(std::ranges::data(range), std::ranges::size(range));
}

}  // namespace coppice::mpi::internal

namespace coppice::mpi {

// The memory of an operation: a contiguous container that is not a temporary, or a span. It must
// live, and stay where it is, until the operation has completed.
template <class Range>
concept readable_memory =
    internal::lasting_range<Range> && transferable<std::remove_const_t<internal::object_of<Range>>>;
// Readable memory whose objects can be written, too.
template <class Range>
concept writable_memory = readable_memory<Range> && !std::is_const_v<internal::object_of<Range>>;
// Types that have reductions: integers and floating-point numbers, but no characters and no bool.
template <class T>
concept reducible = internal::element_of<T>() != internal::element::raw;

}  // namespace coppice::mpi
