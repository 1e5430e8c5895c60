// Operations of channels, stopped in every way.
#include <coppice/channel.hpp>

#include "every_operation.hpp"

namespace {

using namespace coppice;
using namespace coppice::test;

class every_operation_of_channels : public testing::Test {
protected:
    void check(waiting_operation op) {
        on_loop{loop}(stop_in_every_way(loop, std::move(op), true));
    }
    // A receive of what is empty, and a send that makes it ready.
    template <class Receive, class Send>
    void receives(const char* name, Receive receive, Send send) {
        check(waits(name, receive, [send]() -> task<> {
            send();
            co_return;
        }));
    }

    io::context loop;
};

TEST_F(every_operation_of_channels, receive) {
    channel<int> c(1);
    receives("channel::receive", [&] { return c.receive(); }, [&] { c.try_send(1); });
    unbounded_channel<int> u;
    receives("unbounded_channel::receive", [&] { return u.receive(); }, [&] { u.send(1); });
    spsc_channel<int> s(1);
    receives("spsc_channel::receive", [&] { return s.receive(); }, [&] { s.try_send(1); });
    oneshot<int> o;
    receives("oneshot::receive", [&] { return o.receive(); }, [&] { o.send(1); });
    broadcast_channel<int> b(1);
    auto from = b.subscribe();
    receives("receiver::receive", [&] { return from.receive(); }, [&] { b.send(1); });
    watch<int> w(0);
    receives("watch::changed", [&] { return w.changed(0); }, [&] { w.set(1); });
}

TEST_F(every_operation_of_channels, send) {
    channel<int> c(1);
    c.try_send(1);
    receives("channel::send", [&] { return c.send(2); }, [&] { c.try_receive(); });
    spsc_channel<int> s(1);
    s.try_send(1);
    receives("spsc_channel::send", [&] { return s.send(2); }, [&] { s.try_receive(); });
}

}  // namespace
