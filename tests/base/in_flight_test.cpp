// base/internal/in_flight.hpp: an object ends after the calls on it.
#include <coppice/base/internal/in_flight.hpp>

#include "emulated.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace {

TEST(in_flight, an_object_may_be_destroyed_as_soon_as_a_calls_work_is_visible) {
    struct object {
        ~object() { calls.wait(); }
        void call(coppice::internal::atomic<int>& done) {
            const coppice::internal::in_flight::entry entry(calls);
            done.store(1, coppice::internal::release);
            // If the end came too early, a sanitizer reports it.
            touched.fetch_add(1, coppice::internal::relaxed);
        }
        coppice::internal::in_flight calls;
        coppice::internal::atomic<int> touched{0};
    };
    for (int i = 0; i != coppice::test::repeated(2000); ++i) {
        coppice::internal::atomic<int> done{0};
        auto o = std::make_unique<object>();
        std::thread caller([&done, &o = *o] { o.call(done); });
        while (done.load(coppice::internal::acquire) == 0) coppice::internal::spin_hint();
        o.reset();
        caller.join();
    }
}

}  // namespace
