// serializer: how an object whose bytes are not its value becomes bytes, and an object again.
#pragma once
// A program specializes the template for its type, and names the members in the same order twice:
//
//   template <>
//   struct coppice::mpi::serializer<person> {
//       static void write(mpi::output_archive& to, const person& p) { to.write(p.name, p.marks); }
//       static person read(mpi::input_archive& from) {
//           return {from.read<std::string>(), from.read<std::vector<int>>()};
//       }
//   };
//
// Braces evaluate from left to right, and the arguments of a call in any order. There are
// serializers of std::pair, tuple, array, optional, variant, and unique_ptr, and of the containers
// of std that insert() extends, if what they hold has one. Transferable types need none; they are
// copied byte by byte. So all processes must have one representation of them. A type that contains
// itself, such as a list of std::unique_ptr, is written and read recursively: how deep it is, is
// limited by the stack of the thread, which for reading is often the environment's.
//
// Our own design, after the archives of Boost.Serialization.

#include <coppice/mpi/internal/bytes.hpp>
#include <coppice/mpi/internal/element.hpp>

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace coppice::mpi {

class output_archive;
class input_archive;

// How objects of type T are written and read. write() may throw; then nothing is sent. read()
// throws if the bytes are none of T, and returns an object that equals the one that was written.
template <class T>
struct serializer;

// A type with a serializer.
template <class T>
concept has_serializer = requires(output_archive& to, input_archive& from, const T& object) {
    serializer<T>::write(to, object);
    { serializer<T>::read(from) } -> std::same_as<T>;
};
// What can be sent as an object, returned by a remote call, and so on. A serializer of a
// transferable type is used where there is one.
template <class T>
concept serializable = has_serializer<T> || transferable<T>;

namespace internal {

struct archive_access;

// Throws std::system_error with bad_message.
[[noreturn]] void throw_bad_message(const char* what);

}  // namespace internal

// The bytes of objects. Threads: one at a time.
class output_archive {
public:
    output_archive() = default;
    output_archive(const output_archive&) = delete;
    output_archive& operator=(const output_archive&) = delete;

    // Appends the objects. Errors: std::bad_alloc, and what a serializer throws.
    template <serializable... Ts>
    void write(const Ts&... objects) {
        (write_one(objects), ...);
    }
    // Returns how many bytes there are.
    std::size_t size() const noexcept { return bytes_.size(); }

private:
    friend internal::archive_access;

    template <class T>
    void write_one(const T& object) {
        if constexpr (has_serializer<T>) {
            serializer<T>::write(*this, object);
        } else {
            append(std::as_bytes(std::span<const T, 1>(&object, 1)));
        }
    }
    void append(std::span<const std::byte> more) {
        bytes_.insert(bytes_.end(), more.begin(), more.end());
    }

    internal::bytes bytes_;
};

// The bytes of objects that have come. Threads: one at a time.
class input_archive {
public:
    // Reads what has been written. Lifetime: `bytes` outlives it.
    explicit input_archive(std::span<const std::byte> bytes) noexcept : left_(bytes) {}
    input_archive(const input_archive&) = delete;
    input_archive& operator=(const input_archive&) = delete;

    // Returns the next object. Errors: std::system_error with bad_message, if there are fewer bytes
    // than it has, or if it is a bool whose byte is neither 0 nor 1; std::bad_alloc; and what a
    // serializer throws. The bytes of other transferable types, also of structs and arrays with a
    // bool in them, are not examined.
    template <serializable T>
    T read() {
        if constexpr (has_serializer<T>) {
            return serializer<T>::read(*this);
        } else if constexpr (std::is_same_v<T, bool>) {
            const auto value = std::to_integer<unsigned>(take(1).front());
            if (value > 1) internal::throw_bad_message("mpi: a message has a bool that is none");
            return value != 0;
        } else {
            std::array<std::byte, sizeof(T)> raw;
            std::memcpy(raw.data(), take(sizeof(T)).data(), sizeof(T));
            return std::bit_cast<T>(raw);
        }
    }
    // Returns how many bytes are left.
    std::size_t size() const noexcept { return left_.size(); }

private:
    friend internal::archive_access;

    std::span<const std::byte> take(std::size_t size) {
        if (size > left_.size())
            internal::throw_bad_message("mpi: a message is shorter than the objects in it");
        const std::span<const std::byte> taken = left_.first(size);
        left_ = left_.subspan(size);
        return taken;
    }

    std::span<const std::byte> left_;
};

namespace internal {

struct archive_access {
    static void append(output_archive& to, std::span<const std::byte> more) { to.append(more); }
    static std::span<const std::byte> take(input_archive& from, std::size_t size) {
        return from.take(size);
    }
    static bytes& bytes_of(output_archive& a) noexcept { return a.bytes_; }
    static std::span<const std::byte>& left(input_archive& a) noexcept { return a.left_; }
};

// Appends the objects. If it throws, `to` is lost.
template <serializable... Ts>
void write(bytes& to, const Ts&... objects) {
    output_archive archive;
    archive_access::bytes_of(archive).swap(to);
    archive.write(objects...);
    to.swap(archive_access::bytes_of(archive));
}
// Removes the object from the front.
template <serializable T>
T read(std::span<const std::byte>& from) {
    input_archive archive(from);
    T object = archive.read<T>();
    from = archive_access::left(archive);
    return object;
}

// Throws bad_message if there is more.
inline void check_end(std::span<const std::byte> left) {
    if (!left.empty()) throw_bad_message("mpi: a message is longer than the objects in it");
}
// Returns the only object of a message. Errors: those of read<T>() and check_end().
template <serializable T>
T unpack(std::span<const std::byte> message) {
    T object = read<T>(message);
    check_end(message);
    return object;
}

// A container whose objects insert() appends, such as those of std, but those of fixed size.
template <class C>
concept growing_container = std::default_initializable<C> && std::ranges::input_range<const C> &&
                            requires(C& c, const C& full, typename C::value_type&& object) {
                                { full.size() } -> std::convertible_to<std::size_t>;
                                c.insert(c.end(), std::move(object));
                            };

// The type that an element is read as: a key of a map is const.
template <class T>
struct element_of_container {
    using type = T;
};
template <class Key, class Mapped>
struct element_of_container<std::pair<const Key, Mapped>> {
    using type = std::pair<Key, Mapped>;
};
template <class C>
using element_in = typename element_of_container<typename C::value_type>::type;

// Writes an element as an Element; neither a pair with a const key nor a proxy is one.
template <class Element, class Found>
void write_element(output_archive& to, const Found& found) {
    if constexpr (std::is_same_v<Element, Found>) {
        to.write(found);
    } else if constexpr (requires { found.second; }) {
        to.write(found.first, found.second);
    } else {
        to.write(static_cast<Element>(found));
    }
}

// A container whose memory is the bytes of its objects.
template <class C>
concept bulk_container =
    std::ranges::contiguous_range<C> && transferable<typename C::value_type> &&
    !has_serializer<typename C::value_type> && requires(C& c, std::size_t n) { c.resize(n); };

}  // namespace internal

// Containers: the number of objects, and the objects. Each object must have at least one byte, so
// that a wrong number cannot ask for more than has come. Errors: std::system_error with
// invalid_argument from write(), if its serializer writes none.
template <internal::growing_container C>
    requires serializable<internal::element_in<C>>
struct serializer<C> {
    static void write(output_archive& to, const C& container) {
        to.write(std::uint64_t{container.size()});
        if constexpr (internal::bulk_container<C>) {
            internal::archive_access::append(to, std::as_bytes(std::span(container)));
        } else {
            for (auto&& each : container) {
                const std::size_t before = to.size();
                internal::write_element<internal::element_in<C>>(to, each);
                if (to.size() == before)
                    throw std::system_error(
                        std::make_error_code(std::errc::invalid_argument),
                        "mpi::serializer: an object in a container has no bytes");
            }
        }
    }
    static C read(input_archive& from) {
        const auto count = from.read<std::uint64_t>();
        C container;
        if constexpr (internal::bulk_container<C>) {
            using object = typename C::value_type;
            if (count > from.size() / sizeof(object)) refuse();
            container.resize(static_cast<std::size_t>(count));
            const auto all = internal::archive_access::take(from, count * sizeof(object));
            if (count != 0) std::memcpy(container.data(), all.data(), all.size());
        } else {
            if (count > from.size()) refuse();
            for (std::uint64_t n = 0; n != count; ++n)
                container.insert(container.end(), from.read<internal::element_in<C>>());
        }
        return container;
    }

private:
    [[noreturn]] static void refuse() {
        internal::throw_bad_message("mpi: a message is shorter than the container in it");
    }
};

template <serializable A, serializable B>
struct serializer<std::pair<A, B>> {
    static void write(output_archive& to, const std::pair<A, B>& p) { to.write(p.first, p.second); }
    static std::pair<A, B> read(input_archive& from) { return {from.read<A>(), from.read<B>()}; }
};

template <serializable... Ts>
struct serializer<std::tuple<Ts...>> {
    static void write(output_archive& to, const std::tuple<Ts...>& t) {
        std::apply([&to](const Ts&... objects) { to.write(objects...); }, t);
    }
    static std::tuple<Ts...> read([[maybe_unused]] input_archive& from) {
        return std::tuple<Ts...>{from.read<Ts>()...};
    }
};

template <serializable T, std::size_t N>
    requires(!transferable<T> || has_serializer<T>)
struct serializer<std::array<T, N>> {
    static void write(output_archive& to, const std::array<T, N>& a) {
        for (const T& each : a) to.write(each);
    }
    static std::array<T, N> read(input_archive& from) {
        return read_each(from, std::make_index_sequence<N>());
    }

private:
    template <std::size_t... I>
    static std::array<T, N> read_each([[maybe_unused]] input_archive& from,
                                      std::index_sequence<I...>) {
        return {{(static_cast<void>(I), from.read<T>())...}};
    }
};

template <serializable T>
struct serializer<std::optional<T>> {
    static void write(output_archive& to, const std::optional<T>& o) {
        to.write(o.has_value());
        if (o) to.write(*o);
    }
    static std::optional<T> read(input_archive& from) {
        if (!from.read<bool>()) return std::nullopt;
        return from.read<T>();
    }
};

// What a pointer owns, or that it is empty.
template <class T>
    requires(!std::is_array_v<T> && !std::is_polymorphic_v<T>)
struct serializer<std::unique_ptr<T>> {
    static void write(output_archive& to, const std::unique_ptr<T>& p) {
        to.write(p != nullptr);
        if (p) to.write(*p);
    }
    static std::unique_ptr<T> read(input_archive& from) {
        if (!from.read<bool>()) return nullptr;
        return std::make_unique<T>(from.read<T>());
    }
};

template <serializable... Ts>
struct serializer<std::variant<Ts...>> {
    // Errors: std::bad_variant_access for a variant without a value.
    static void write(output_archive& to, const std::variant<Ts...>& v) {
        std::visit([&to, &v](const auto& object) { to.write(std::uint32_t(v.index()), object); },
                   v);
    }
    static std::variant<Ts...> read(input_archive& from) {
        return read_alternative(from, from.read<std::uint32_t>(), std::index_sequence_for<Ts...>());
    }

private:
    template <std::size_t... I>
    static std::variant<Ts...> read_alternative(input_archive& from, std::uint32_t index,
                                                std::index_sequence<I...>) {
        std::optional<std::variant<Ts...>> made;
        static_cast<void>(
            ((index == I && (made.emplace(std::in_place_index<I>, from.read<Ts>()), true)) || ...));
        if (!made) internal::throw_bad_message("mpi: a message has an unknown alternative");
        return std::move(*made);
    }
};

}  // namespace coppice::mpi
