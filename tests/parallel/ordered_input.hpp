// Input in the patterns that sorts distinguish, and elements that record what happens to them.
#pragma once

#include <coppice/base/internal/atomic.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ordered_input {

enum class pattern {
    random,
    few_values,
    one_value,
    sorted,
    reversed,
    organ_pipe,
    saw,
    sorted_but_last,
    nearly_sorted,
};
inline constexpr pattern patterns[] = {
    pattern::random, pattern::few_values,      pattern::one_value,
    pattern::sorted, pattern::reversed,        pattern::organ_pipe,
    pattern::saw,    pattern::sorted_but_last, pattern::nearly_sorted,
};

inline std::uint32_t random_number() {
    static std::mt19937 random(26);  // NOLINT: the same input each time
    return static_cast<std::uint32_t>(random());
}

inline std::uint32_t number(pattern p, std::size_t i, std::size_t size) {
    const auto at = static_cast<std::uint32_t>(i);
    const auto n = static_cast<std::uint32_t>(size);
    switch (p) {
        case pattern::random:
            return random_number();
        case pattern::few_values:
            return random_number() % 3;
        case pattern::one_value:
            return 7;
        case pattern::sorted:
            return at;
        case pattern::reversed:
            return n - at;
        case pattern::organ_pipe:
            return at < n / 2 ? at : n - at;
        case pattern::saw:
            return at % (n / 6 + 1);
        case pattern::sorted_but_last:
            return at + 1 == n ? 0 : at;
        case pattern::nearly_sorted:
            return random_number() % 40 == 0 ? random_number() % n : at;
    }
    return 0;
}
inline std::vector<std::uint32_t> numbers(pattern p, std::size_t size) {
    std::vector<std::uint32_t> v(size);
    for (std::size_t i = 0; i != size; ++i) v[i] = number(p, i, size);
    return v;
}

template <class T>
T make(std::uint32_t x) {
    return T(x);
}
template <>
inline std::string make<std::string>(std::uint32_t x) {
    return std::to_string(x) + std::string(x % 23, 'x');
}
template <>
inline std::unique_ptr<int> make<std::unique_ptr<int>>(std::uint32_t x) {
    return std::make_unique<int>(static_cast<int>(x >> 1));
}

// Sizes around the limits at which the sorts change their method: leaves, one worker, merged runs.
inline constexpr std::size_t sizes[] = {0,   1,   2,   3,    4,    7,    8,   9,  15,
                                        16,  17,  23,  24,   25,   33,   48,  64, 97,
                                        128, 257, 600, 1000, 2049, 4097, 5000};

// An element that knows its place in the input, for tests of stability.
struct numbered {
    std::uint32_t value;
    std::uint32_t place;
    bool operator==(const numbered&) const = default;
};
inline std::vector<numbered> number_all(const std::vector<std::uint32_t>& values) {
    std::vector<numbered> all;
    for (const std::uint32_t each : values) {
        all.push_back({each, static_cast<std::uint32_t>(all.size())});
    }
    return all;
}

// An element that counts its living objects, and owns memory, so that a lost element is a leak. If
// MayThrow, moves throw once the budget of moves is used up.
template <bool MayThrow>
class counted {
public:
    static inline coppice::internal::atomic<long> live{0};
    static inline coppice::internal::atomic<long> moves_left{1L << 40};

    explicit counted(std::uint32_t x) : value_(std::make_unique<std::uint32_t>(x)) { add(1); }
    counted(counted&& other) noexcept(!MayThrow) : value_(other.take()) { add(1); }
    counted& operator=(counted&& other) noexcept(!MayThrow) {
        value_ = other.take();
        return *this;
    }
    ~counted() { add(-1); }
    // 0 after a move.
    std::uint32_t value() const noexcept { return value_ == nullptr ? 0 : *value_; }

private:
    static void add(long n) noexcept { live.fetch_add(n, coppice::internal::relaxed); }
    std::unique_ptr<std::uint32_t> take() noexcept(!MayThrow) {
        if constexpr (MayThrow) {
            if (moves_left.fetch_sub(1, coppice::internal::relaxed) <= 0) {
                throw std::runtime_error("a move");
            }
        }
        return std::move(value_);
    }
    std::unique_ptr<std::uint32_t> value_;
};

// A comparator for elements with value() or operators. It throws when its count of calls reaches 0.
struct throwing_less {
    coppice::internal::atomic<long>* calls_left;
    template <class T>
    bool operator()(const T& a, const T& b) const {
        if (calls_left->fetch_sub(1, coppice::internal::relaxed) == 1) {
            throw std::logic_error("a comparison");
        }
        if constexpr (requires { a.value(); }) {
            return a.value() < b.value();
        } else {
            return a < b;
        }
    }
};

}  // namespace ordered_input
