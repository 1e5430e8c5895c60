// The thread of io/worker.hpp, and the calls that it makes.
#include <coppice/io/worker.hpp>

#include <coppice/io/context.hpp>

#include <unistd.h>
#include <cerrno>

namespace coppice::io {

worker::worker() : thread_([this] { jobs_.serve(); }) {}

worker::~worker() {
    run(last_);
    thread_.join();
}

void file_operation::call(job* j) noexcept {
    file_operation& self = *static_cast<file_operation*>(j);
    // relaxed: see give_up()
    self.result = self.given_up_.load(relaxed) ? -ECANCELED : self.blocking_call();
    self.on->owner->post(self.back_);  // the loop may end self before this returns
}

int file_operation::blocking_call() noexcept {
    for (;;) {
        const auto at = static_cast<off_t>(offset);
        const long outcome = code == opcode::read_at    ? ::pread(on->fd, data, size, at)
                             : code == opcode::write_at ? ::pwrite(on->fd, data, size, at)
                                                        : ::fsync(on->fd);
        if (outcome >= 0) return static_cast<int>(outcome);
        if (errno != EINTR) return -errno;
    }
}

void file_operation::way_back::arrive(operation* op) noexcept {
    ring_operation& file = static_cast<way_back*>(op)->file;
    file.on->owner->finish(file);
}

}  // namespace coppice::io
