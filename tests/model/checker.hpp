// The checker behind the models' driver: explores one model. Compiled once for all models.
#pragma once

#include <coppice/base/internal/atomic.hpp>

#include <cstddef>

namespace model {

// A model without its type. The checker's engine is large; as a template of each model's type, it
// took most of the time to compile a model.
struct erased_test {
    std::size_t size;
    unsigned threads;  // 1 to most_threads
    void (*construct)(void* memory);
    void (*destroy)(void* test);
    void (*before)(void* test);
    void (*run)(void* test, unsigned thread);
    void (*after)(void* test);
};

inline constexpr unsigned most_threads = 6;

template <class Test>
constexpr erased_test erase() {
    static_assert(Test::params::thread_count <= most_threads, "raise most_threads");
    return {sizeof(Test),
            Test::params::thread_count,
            [](void* memory) { new (memory) Test(); },
            [](void* test) { static_cast<Test*>(test)->~Test(); },
            [](void* test) { static_cast<Test*>(test)->before(); },
            [](void* test, unsigned thread) { static_cast<Test*>(test)->thread(thread); },
            [](void* test) { static_cast<Test*>(test)->after(); }};
}

// Explores the test's executions, as `params` say. Returns true if it found no failure. Otherwise,
// if `explains`, runs the failing execution again, and writes its history to the output stream.
bool explore(const erased_test& test, rl::test_params& params, bool explains);

}  // namespace model
