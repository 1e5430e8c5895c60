// bytes: arguments and results of remote calls as a message, and back.
#pragma once

#include <coppice/mpi/internal/element.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

namespace coppice::mpi::internal {

using bytes = std::vector<std::byte>;

// True for the types whose objects are written with their number.
template <class T>
inline constexpr bool is_sequence = false;
template <>
inline constexpr bool is_sequence<std::string> = true;
template <transferable T>
inline constexpr bool is_sequence<std::vector<T>> = !std::is_same_v<T, bool>;

// Appends the value, and its length before it if it is a sequence.
template <class T>
void write(bytes& to, const T& value) {
    if constexpr (is_sequence<T>) {
        write(to, value.size());
        const auto all = std::as_bytes(std::span(value));
        to.insert(to.end(), all.begin(), all.end());
    } else {
        const auto all = std::as_bytes(std::span<const T, 1>(&value, 1));
        to.insert(to.end(), all.begin(), all.end());
    }
}

// Removes the value from the front. Errors: std::system_error with bad_message, if it is not there.
template <class T>
T read(std::span<const std::byte>& from) {
    const auto take = [&from](std::size_t size) {
        if (size > from.size())
            throw std::system_error(std::make_error_code(std::errc::bad_message),
                                    "mpi::remote: the message is shorter than its values; all "
                                    "processes must run the same program");
        const std::span<const std::byte> taken = from.first(size);
        from = from.subspan(size);
        return taken;
    };
    if constexpr (is_sequence<T>) {
        using object = typename T::value_type;
        const std::size_t count = read<std::size_t>(from);
        const auto all =
            take(count > from.size() / sizeof(object) ? from.size() + 1 : count * sizeof(object));
        T value(count, object());
        if (count != 0) std::memcpy(value.data(), all.data(), all.size());
        return value;
    } else {
        std::array<std::byte, sizeof(T)> raw;
        std::memcpy(raw.data(), take(sizeof(T)).data(), sizeof(T));
        return std::bit_cast<T>(raw);
    }
}

}  // namespace coppice::mpi::internal
