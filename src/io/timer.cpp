// The waits of io/timer.hpp.
#include <coppice/io/internal/wait_request.hpp>

#include <coppice/base/saturating.hpp>

#include <algorithm>
#include <cerrno>

namespace coppice::io::internal {

bool wait_request::submit() noexcept {
    if (when_ == time_point::min()) when_ = saturating_add(loop().now(), time_);
    loop().arm(*this, std::min(when_, deadline()));
    listen();
    return false;
}

void wait_request::interrupt() noexcept {
    if (!timer_entry::armed()) return;  // already ending
    loop().disarm(*this);
    complete = &interrupted;
    loop().defer(*this);
}

void wait_request::interrupted(operation* op) noexcept {
    wait_request& self = *static_cast<wait_request*>(op);
    self.set_outcome(-ECANCELED);
    self.ended();
}

void wait_request::fire(timer_entry* entry) noexcept {
    wait_request& self = *static_cast<wait_request*>(entry);
    self.loop().begin_row();
    self.set_outcome(self.loop().ending() ? -ECANCELED : 0);
    if (self.deadline() < self.when_ && !self.loop().ending()) self.end_at_deadline();
    self.ended();
}

}  // namespace coppice::io::internal
