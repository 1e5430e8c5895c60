// One row of a product of matrices: the same machine code for all rivals.
#include "rivals.hpp"

namespace bench_pool {

void matrices::row(std::size_t i) {
    float* const out = &product[i * size];
    for (std::size_t j = 0; j != size; ++j) out[j] = 0;
    for (std::size_t k = 0; k != size; ++k) {
        const float factor = a[i * size + k];
        const float* const line = &b[k * size];
        for (std::size_t j = 0; j != size; ++j) out[j] += factor * line[j];
    }
}

}  // namespace bench_pool
