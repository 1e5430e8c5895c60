// The system calls of io/signal_set.hpp.
#include <coppice/io/signal_set.hpp>

#include <system_error>

namespace coppice::io {

using namespace internal;

struct signal_set::opened {
    opened(context& c, std::span<const int> signals)
        : owner(c),
          received(
              c.system().receive_signals(signals).value_or_throw("signals could not be received")) {
        const result<int> fd = received->descriptor();
        const result<descriptor*> adopted = fd ? owner.adopt(fd.value()) : fd.error();
        if (!adopted) {
            if (fd) owner.system().close(fd.value());
            received->end();
            throw std::system_error(adopted.error(), "a loop could not take the signals");
        }
        file = adopted.value();
    }
    context& owner;
    received_signals* received;
    descriptor* file = nullptr;
};

signal_set::signal_set(context& owner, std::initializer_list<int> signals)
    : signal_set(owner, std::span(signals.begin(), signals.size())) {}

signal_set::signal_set(context& owner, std::span<const int> signals)
    : signal_set(opened(owner, signals)) {}

signal_set::signal_set(const opened& o) noexcept
    : open_file(o.owner, o.file), signals_(o.received) {}

}  // namespace coppice::io
