// The system calls of io/signal_set.hpp.
#include <coppice/io/signal_set.hpp>

#include <system_error>

namespace coppice::io {

namespace {

open_file receive_signals(context& owner, std::initializer_list<int> signals) {
    const int fd =
        owner.system().receive_signals(signals).value_or_throw("signals could not be received");
    const result<descriptor*> adopted = owner.adopt(fd);
    if (!adopted) {
        owner.system().close(fd);
        throw std::system_error(adopted.error(), "a loop could not take the signals");
    }
    return open_file(owner, adopted.value());
}

}  // namespace

signal_set::signal_set(context& owner, std::initializer_list<int> signals)
    : open_file(receive_signals(owner, signals)) {}

}  // namespace coppice::io
