// The job that the tests of mpi run in, which main() of operations_test.cpp starts.
#pragma once

#include <coppice/execution.hpp>
#include <coppice/mpi/environment.hpp>

#include <cstddef>
#include <utility>

namespace mpi_test {

inline coppice::mpi::environment* shared_environment = nullptr;

inline constexpr int tag_of_large = 4711;  // of a message of 3 GiB that a probe pretends to find

inline const coppice::mpi::communicator& world() {
    return shared_environment->world();
}
inline int next_rank() {
    return (world().rank() + 1) % world().size();
}
inline int previous_rank() {
    return (world().rank() + world().size() - 1) % world().size();
}
inline std::size_t job_size() {
    return static_cast<std::size_t>(world().size());
}

template <class Sender>
auto wait_for(Sender&& sender) {
    return coppice::this_thread::sync_wait(std::forward<Sender>(sender));
}

}  // namespace mpi_test
