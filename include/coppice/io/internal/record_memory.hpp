// record_memory: memory for one encrypted record, held only while there is something in it.
#pragma once
// A thread keeps a few of these for its next operation, so that an operation allocates nothing in
// steady state, and an idle connection has none.

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/io/secure_engine.hpp>

#include <cstddef>
#include <span>
#include <utility>

namespace coppice::io::internal {

// Returns memory of secure_engine::room_min bytes, or nullptr if there is none. Give it back on any
// thread.
std::byte* take_record_memory() noexcept;
void give_record_memory(std::byte* memory) noexcept;

// Owns such memory, or none.
class record_memory {
public:
    record_memory() noexcept = default;
    record_memory(const record_memory&) = delete;
    record_memory& operator=(const record_memory&) = delete;
    ~record_memory() { release(); }

    // Returns false if there is no memory.
    bool acquire() noexcept {
        if (bytes_ == nullptr) bytes_ = take_record_memory();
        return bytes_ != nullptr;
    }
    void release() noexcept {
        if (bytes_ != nullptr) give_record_memory(std::exchange(bytes_, nullptr));
    }
    bool is_there() const noexcept { return bytes_ != nullptr; }
    std::span<std::byte> all() const noexcept {
        return {bytes_, bytes_ == nullptr ? 0 : secure_engine::room_min};
    }

private:
    std::byte* bytes_ = nullptr;
};

}  // namespace coppice::io::internal
