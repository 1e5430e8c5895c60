// How the pool of io/buffer.hpp grows.
#include <coppice/io/buffer.hpp>

namespace coppice::io {

std::byte* buffer_pool::take_fresh() {
    if (fresh_ == 0) {
        slabs_.push_back(std::unique_ptr<std::byte[]>(new std::byte[slab_buffers * buffer_bytes]));
        fresh_ = slab_buffers;
    }
    return slabs_.back().get() + (slab_buffers - fresh_--) * buffer_bytes;
}

}  // namespace coppice::io
