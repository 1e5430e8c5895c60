// http/client.hpp: whatever a server answers, and in whatever pieces, the client ends, stays within
// its limits, and reports the same. The world is simulated, so a run takes no real time.
#include <coppice/http/client.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "hostile_server.hpp"
#include "verify.hpp"

namespace {

using namespace coppice;
using test::run;
using test::serve;
using test::verify;
using test::verify_equal;

task<> ask(http::client& client, io::endpoint to, std::string_view method, std::string& said) {
    http::client_request r;
    r.to = to;
    r.method = method;
    try {
        const http::client_response answer = co_await client.send(r);
        said = std::to_string(answer.status()) + " " + std::string(answer.find("X").value_or("-")) +
               " " + std::string(answer.trailer("X").value_or("-")) + " ";
        said.append(answer.body());
    } catch (const std::system_error&) {
        said = "refused";  // an answer with two faults is refused for the first that is found
    }
}

std::string talk(std::string_view bytes, unsigned char choice, std::size_t first,
                 std::size_t others) {
    io::simulation world(1, io::simulated_faults::none());
    std::string said = "nothing";
    {
        io::context loop(world);
        io::tcp::acceptor acceptor(loop, io::loopback(0));
        serve(acceptor, loop, bytes, first, others);
        http::client_options o;
        o.idle_connections_max = 0;
        if ((choice & 1) != 0) o.limits.header_bytes_max = 64;
        if ((choice & 2) != 0) o.limits.fields_max = 3;
        if ((choice & 4) != 0) o.limits.body_bytes_max = 20;
        http::client client(loop, o);
        run(ask(client, acceptor.local(), (choice & 8) != 0 ? "HEAD" : "GET", said));
        loop.run();
        if ((choice & 4) != 0) verify(said.size() < 1000, "a body within its limit");
    }
    verify(said != "nothing", "the client ends");
    return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const unsigned char choice = data[0];
    const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
    const std::string whole = talk(bytes, choice, bytes.size() + 1, 1);
    if (bytes.empty()) return 0;
    verify_equal(talk(bytes, choice, 1 + choice % bytes.size(), bytes.size()), whole, "split");
    if (bytes.size() < 200) verify_equal(talk(bytes, choice, 1, 1), whole, "bytewise");
    return 0;
}
