// writer: assembles text in memory that its user has sized.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace coppice::http {

// Writes pieces one after the other. Errors: memory that is too small is a programmer's error and
// is not detected.
class writer {
public:
    explicit writer(char* to) noexcept : to_(to) {}
    // The size of a literal is known at compile time, which makes its copy a few moves.
    [[gnu::always_inline]] writer& operator<<(std::string_view text) noexcept {
        if (__builtin_constant_p(text.size())) {
            std::memcpy(to_, text.data(), text.size());
        } else {
            copy(to_, text.data(), text.size());
        }
        to_ += text.size();
        return *this;
    }
    void two_digits(int number) noexcept {
        *to_++ = static_cast<char>('0' + number / 10);
        *to_++ = static_cast<char>('0' + number % 10);
    }
    void number(std::uint64_t value) noexcept { to_ = write(to_, value); }
    const char* end() const noexcept { return to_; }

private:
    // Both are kept out of line, so that the code that writes a head occupies few cache lines. Most
    // texts have 8 to 32 bytes: two overlapping moves are faster than memcpy().
    [[gnu::noinline]] static void copy(char* to, const char* from, std::size_t size) noexcept {
        if (size > 32 || size < 8) {
            std::memcpy(to, from, size);
        } else if (size >= 16) {
            move<16>(to, from);
            move<16>(to + size - 16, from + size - 16);
        } else {
            move<8>(to, from);
            move<8>(to + size - 8, from + size - 8);
        }
    }
    [[gnu::noinline]] static char* write(char* to, std::uint64_t value) noexcept {
        return std::to_chars(to, to + 20, value).ptr;
    }
    template <std::size_t Size>
    [[gnu::always_inline]] static void move(char* to, const char* from) noexcept {
        std::memcpy(to, from, Size);
    }

    char* to_;
};

}  // namespace coppice::http
