// Growth of io/buffer.hpp.
#include <coppice/io/buffer.hpp>

namespace coppice::io {

void buffer_pool::grow() {
    slabs_.push_back(std::unique_ptr<std::byte[]>(new std::byte[slab_buffers * buffer_bytes]));
    // Room for every buffer there is, so that give() never allocates.
    free_.reserve(slabs_.size() * slab_buffers);
    for (std::size_t i = slab_buffers; i-- != 0;) {
        free_.push_back(slabs_.back().get() + i * buffer_bytes);
    }
}

}  // namespace coppice::io
