// A callback-style program moved to coroutines in three steps; each says the same.
#include <coppice/coppice.hpp>

#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

using namespace coppice;
namespace ex = coppice::execution;

namespace {

std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

// The server of all steps: sends back one message, reversed.
task<> reverse_once(io::tcp::acceptor& acceptor) {
    io::tcp::socket socket = co_await acceptor.accept();
    std::array<char, 64> text;
    const std::size_t n = co_await socket.receive(std::as_writable_bytes(std::span(text)));
    const std::string answer(std::make_reverse_iterator(text.begin() + static_cast<long>(n)),
                             std::make_reverse_iterator(text.begin()));
    co_await socket.send_all(bytes(answer));
}

// [callbacks]
// Step 0. The state of the conversation is an object that keeps itself alive from callback to
// callback, and each callback handles its error.
class conversation : public std::enable_shared_from_this<conversation> {
public:
    conversation(io::context& loop, std::function<void(std::error_code, std::string)> done)
        : socket_(loop), done_(std::move(done)) {}

    void start(io::endpoint to) {
        socket_.connect(to, [self = shared_from_this()](std::error_code ec) {
            if (ec) return self->done_(ec, "");
            self->send();
        });
    }

private:
    void send() {
        socket_.send_all(bytes("stressed"), [self = shared_from_this()](std::error_code ec) {
            if (ec) return self->done_(ec, "");
            self->receive();
        });
    }
    void receive() {
        socket_.receive(std::as_writable_bytes(std::span(text_)),
                        [self = shared_from_this()](std::error_code ec, std::size_t n) {
                            self->done_(ec, std::string(self->text_.data(), n));
                        });
    }

    io::tcp::socket socket_;
    std::array<char, 64> text_;
    std::function<void(std::error_code, std::string)> done_;
};
// [/callbacks]

// [coroutine]
// Step 1. The conversation becomes a task: the same operations without their last argument. Locals
// are the state, errors are exceptions, and no references are counted.
task<std::string> converse(io::context& loop, io::endpoint to) {
    io::tcp::socket socket(loop);
    co_await socket.connect(to);
    co_await socket.send_all(bytes("stressed"));
    std::array<char, 64> text;
    const std::size_t n = co_await socket.receive(std::as_writable_bytes(std::span(text)));
    co_return std::string(text.data(), n);
}
// [/coroutine]

// [bridge]
// Step 2. Callers that are not moved yet still get their callback: the task is spawned, and its
// result is passed on. No caller had to change.
void converse(io::context& loop, io::endpoint to, ex::counting_scope& scope,
              std::function<void(std::error_code, std::string)> done) {
    ex::spawn(ex::starts_on(loop.get_scheduler(), converse(loop, to)) |
                  ex::then([done](std::string text) noexcept { done({}, std::move(text)); }) |
                  ex::upon_error([done](std::exception_ptr thrown) noexcept {
                      try {
                          std::rethrow_exception(thrown);
                      } catch (const std::system_error& error) {
                          done(error.code(), "");
                      }
                  }),
              scope.get_token());
}
// [/bridge]

// [moved]
// Step 3. The caller is moved too. when_all adds what the callbacks could not say: both at once.
task<> moved(io::context& loop, io::tcp::acceptor& acceptor) {
    const std::string text =
        co_await ex::when_all(converse(loop, acceptor.local()), reverse_once(acceptor));
    std::printf("moved: %s\n", text.c_str());
}
// [/moved]

}  // namespace

int main() {
    io::context loop;
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    ex::counting_scope scope;
    const auto serve_one = [&] {
        ex::spawn(ex::starts_on(loop.get_scheduler(), reverse_once(acceptor)), scope.get_token(),
                  [](auto&&) noexcept {});
    };
    serve_one();
    std::make_shared<conversation>(loop, [](std::error_code, const std::string& text) {
        std::printf("callbacks: %s\n", text.c_str());
    })->start(acceptor.local());
    loop.run();

    loop.restart();
    serve_one();
    converse(loop, acceptor.local(), scope, [](std::error_code, const std::string& text) {
        std::printf("bridged: %s\n", text.c_str());
    });
    loop.run();
    this_thread::sync_wait(scope.join());

    loop.restart();
    std::optional<io::context::work_guard> guard(loop);
    std::thread network([&] { loop.run(); });
    this_thread::sync_wait(ex::starts_on(loop.get_scheduler(), moved(loop, acceptor)));
    guard.reset();
    network.join();
}
