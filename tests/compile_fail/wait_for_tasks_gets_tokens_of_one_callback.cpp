// expect: takes one callback at a time, and each task may register one
// errors: 1
#include <coppice/stop/asymmetric.hpp>
#include <coppice/task/wait_for_tasks.hpp>

struct chosen {
    using stop_source_type = coppice::asymmetric_inplace_stop_source<1>;
};
coppice::task<void, chosen> one();
coppice::task<> both() {
    co_await coppice::wait_for_tasks(one(), one());
}
