// writer: puts text together in memory that its user has sized.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace coppice::http {

// Writes pieces behind each other. Errors: memory that is too small is the caller's mistake.
class writer {
public:
    explicit writer(char* to) noexcept : to_(to) {}
    writer& operator<<(std::string_view text) noexcept {
        std::memcpy(to_, text.data(), text.size());
        to_ += text.size();
        return *this;
    }
    void two_digits(int number) noexcept {
        *to_++ = static_cast<char>('0' + number / 10);
        *to_++ = static_cast<char>('0' + number % 10);
    }
    void number(std::uint64_t value) noexcept { to_ = std::to_chars(to_, to_ + 20, value).ptr; }
    const char* end() const noexcept { return to_; }

private:
    char* to_;
};

}  // namespace coppice::http
