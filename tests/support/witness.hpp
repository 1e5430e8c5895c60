// Counts its own instances, for tests of what lives and when it ends.
#pragma once

namespace coppice::test {

struct witness {
    explicit witness(int& a) : alive(&a) { ++*alive; }
    witness(const witness& other) : alive(other.alive) { ++*alive; }
    witness& operator=(const witness&) = delete;
    ~witness() { --*alive; }
    int* alive;
};

}  // namespace coppice::test
