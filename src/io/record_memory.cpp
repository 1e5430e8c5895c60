// The memory for records that a thread keeps for its next operations.
#include <coppice/io/internal/record_memory.hpp>

#include <coppice/base/lifetime.hpp>

#include <array>

namespace coppice::io::internal {

namespace {

struct record_block {
    std::array<std::byte, secure_engine::room_min> bytes;
};
constexpr std::size_t blocks_max = 8;  // 144 KiB for each thread at most

struct kept_blocks {
    std::array<record_block*, blocks_max> blocks{};
    std::size_t count = 0;
    bool over = false;  // the thread is about to end
    ~kept_blocks() {
        over = true;
        while (count != 0) delete blocks[--count];
    }
};
kept_blocks& of_this_thread() noexcept {
    static thread_local kept_blocks kept;
    return kept;
}

}  // namespace

std::byte* take_record_memory() noexcept {
    kept_blocks& kept = of_this_thread();
    record_block* const block =
        kept.count != 0 ? kept.blocks[--kept.count] : try_new<record_block>();
    return block == nullptr ? nullptr : block->bytes.data();
}

void give_record_memory(std::byte* memory) noexcept {
    auto* const block = reinterpret_cast<record_block*>(memory);
    kept_blocks& kept = of_this_thread();
    if (kept.over || kept.count == blocks_max) {
        delete block;
    } else {
        kept.blocks[kept.count++] = block;
    }
}

}  // namespace coppice::io::internal
