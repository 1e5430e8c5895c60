// A completion token of your own: counts the operations that have ended and those that failed.
#include <coppice/coppice.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

using namespace coppice;
using namespace std::chrono_literals;

namespace {

// [token]
// How many operations have ended, and how many of them failed.
struct tally {
    int ended = 0;
    int failed = 0;
};

class counted_in {
public:
    explicit counted_in(tally& t) noexcept : tally_(&t) {}

    // Called by completion_token_transform. The initiating function returns the same result. Keeps
    // the initiation in a state of its own and calls it with a completion of that state.
    template <class... R, class Initiation>
    void initiate(signature<R...>, Initiation&& initiation) const {
        using kept_type = std::remove_cvref_t<Initiation>;
        auto* const s = new state<kept_type, R...>(*tally_, static_cast<Initiation&&>(initiation));
        s->begin();  // *s may be gone
    }

private:
    template <class Initiation, class... R>
    struct state : initiated_state<Initiation, R...> {
        state(tally& t, Initiation&& i)
            : initiated_state<Initiation, R...>(static_cast<Initiation&&>(i)), counts(t) {}
        void begin() noexcept { this->template call_initiation<&completed>(); }
        static void completed(completion_state<R...>& self, std::error_code error, R...) noexcept {
            const std::unique_ptr<state> s(static_cast<state*>(&self));
            ++s->counts.ended;
            if (error) ++s->counts.failed;
        }
        tally& counts;
    };
    tally* tally_;
};
// [/token]

}  // namespace

int main() {
    io::context loop;
    io::timer timer(loop);
    io::udp::socket socket(loop, io::loopback(0));
    tally counts;
    std::byte bytes[4];
    timer.wait_for(1ms, counted_in(counts));
    socket.receive_from(bytes, counted_in(counts));
    timer.wait_for(2ms, [&](std::error_code) { socket.close(); });  // ends the receive
    loop.run();
    std::printf("%d ended, %d failed\n", counts.ended, counts.failed);
}
