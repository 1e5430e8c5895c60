// Memory that ends at a page that cannot be read: an over-read crashes.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

namespace coppice::test {

// Holds one text at a time, at most `capacity` bytes of it.
class guarded_bytes {
public:
    explicit guarded_bytes(std::size_t capacity) {
        const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        readable_ = (capacity + page - 1) / page * page;
        mapped_ = readable_ + page;
        void* const memory =
            ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) std::abort();
        memory_ = static_cast<char*>(memory);
        if (::mprotect(memory_ + readable_, page, PROT_NONE) != 0) std::abort();
    }
    guarded_bytes(const guarded_bytes&) = delete;
    guarded_bytes& operator=(const guarded_bytes&) = delete;
    ~guarded_bytes() { ::munmap(memory_, mapped_); }

    // Returns a copy of the text that ends at the protected page. Overwrites the previous copy.
    std::span<char> place(std::string_view text) {
        if (text.size() > readable_) std::abort();
        char* const at = memory_ + (readable_ - text.size());
        if (!text.empty()) std::memcpy(at, text.data(), text.size());
        return {at, text.size()};
    }
    std::string_view place_view(std::string_view text) {
        const std::span<char> bytes = place(text);
        return {bytes.data(), bytes.size()};
    }

private:
    char* memory_;
    std::size_t readable_;
    std::size_t mapped_;
};

}  // namespace coppice::test
