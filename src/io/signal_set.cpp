// The system calls of io/signal_set.hpp.
#include <coppice/io/signal_set.hpp>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <cerrno>
#include <system_error>

namespace coppice::io {

namespace {

open_file receive_signals(context& owner, std::initializer_list<int> signals) {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int s : signals) ::sigaddset(&set, s);
    if (const int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr)) {
        throw std::system_error(error, std::system_category(), "pthread_sigmask");
    }
    const int fd = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0) throw std::system_error(errno, std::system_category(), "signalfd");
    const result<descriptor*> adopted = owner.adopt(fd);
    if (!adopted) {
        ::close(fd);
        throw std::system_error(adopted.error(), "a loop could not take the signals");
    }
    return open_file(owner, adopted.value());
}

}  // namespace

signal_set::signal_set(context& owner, std::initializer_list<int> signals)
    : open_file(receive_signals(owner, signals)) {}

}  // namespace coppice::io
