// Shows that the component is found and linked.
#include <coppice/coppice.hpp>

int main() {
    const coppice::mpi::environment environment;
    coppice::mpi::barrier(environment.world(), coppice::block);
}
