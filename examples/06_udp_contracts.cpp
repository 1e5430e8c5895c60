// Two UDP sockets: one thread polls them, and contracts on several threads handle their packets.
#include <coppice/contract.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace coppice;

namespace {

void require(bool ok, const char* what) {
    if (ok) return;
    std::perror(what);
    std::exit(1);
}

// A socket on 127.0.0.1, and the contract that handles what it receives. The poller only reports
// that there is a packet. The contract reads it on some worker, and never on two at once.
class udp_socket {
public:
    udp_socket(work_contract_group& group, std::atomic<int>& open)
        : descriptor_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
        require(descriptor_ >= 0, "socket");
        sockaddr_in address = loopback(0);
        require(::bind(descriptor_, as_sockaddr(address), sizeof address) == 0, "bind");
        // [socket]
        contract_ = group.create_contract([this](work_contract_token& token) { receive(token); },
                                          [this, &open] {
                                              ::close(descriptor_);
                                              open.fetch_sub(1);
                                          });
        // [/socket]
    }

    void readable() noexcept { contract_.schedule(); }
    int descriptor() const noexcept { return descriptor_; }
    bool released() const noexcept { return released_.load(); }
    const std::vector<std::string>& heard() const noexcept { return heard_; }

    sockaddr_in address() const {
        sockaddr_in address{};
        socklen_t size = sizeof address;
        require(::getsockname(descriptor_, as_sockaddr(address), &size) == 0, "getsockname");
        return address;
    }
    void connect_to(sockaddr_in to) {
        require(::connect(descriptor_, as_sockaddr(to), sizeof to) == 0, "connect");
    }
    void send(std::string_view message) {
        require(::send(descriptor_, message.data(), message.size(), 0) >= 0, "send");
    }
    void send_to(sockaddr_in to, std::string_view message) { send_from(descriptor_, to, message); }
    static void send_from(int descriptor, sockaddr_in to, std::string_view message) {
        require(::sendto(descriptor, message.data(), message.size(), 0, as_sockaddr(to),
                         sizeof to) >= 0,
                "sendto");
    }

private:
    static sockaddr_in loopback(std::uint16_t port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return address;
    }
    static sockaddr* as_sockaddr(sockaddr_in& address) {
        return reinterpret_cast<sockaddr*>(&address);
    }

    // [receive]
    // Handles one packet per run, so that the other socket gets its turn.
    void receive(work_contract_token& token) {
        std::array<char, 512> packet;
        const ssize_t size = ::recv(descriptor_, packet.data(), packet.size(), 0);
        if (size < 0) {
            if (errno != EAGAIN) std::perror("recv");
            return;  // nothing to read; the poller schedules it again
        }
        const std::string_view message(packet.data(), static_cast<std::size_t>(size));
        heard_.emplace_back(message);
        if (message == "bye") {
            released_.store(true);
            token.release();  // closes the socket after this run
        } else {
            token.schedule();  // there may be another packet
        }
    }
    // [/receive]

    int descriptor_;
    std::vector<std::string> heard_;  // used only by the contract
    std::atomic<bool> released_{false};
    work_contract contract_;
};

}  // namespace

int main() {
    std::atomic<int> open{2};
    blocking_work_contract_group group(16);
    udp_socket first(group, open);
    udp_socket second(group, open);
    second.connect_to(first.address());

    // [threads]
    // One thread polls and reads nothing.
    std::thread poller([&] {
        while (open.load() != 0) {
            std::array<pollfd, 2> sockets{};
            udp_socket* const of[] = {&first, &second};
            for (int i = 0; i != 2; ++i) {
                sockets[i].fd = of[i]->released() ? -1 : of[i]->descriptor();
                sockets[i].events = POLLIN;
            }
            if (::poll(sockets.data(), sockets.size(), 10) <= 0) continue;
            for (int i = 0; i != 2; ++i) {
                if ((sockets[i].revents & POLLIN) != 0) of[i]->readable();
            }
        }
    });
    // Several threads handle packets.
    inplace_stop_source done;
    std::vector<std::thread> workers;
    for (int i = 0; i != 3; ++i) {
        workers.emplace_back([&] {
            while (group.execute_next_contract(done.get_token())) {
            }
        });
    }
    // [/threads]

    const sockaddr_in to_first = first.address(), to_second = second.address();
    second.send("guess what?");
    first.send_to(to_second, "chicken butt!");
    second.send("is that all?");
    first.send_to(to_second, "bye");
    // The second socket may close as soon as it receives that, so a third one tells the first.
    const int third = ::socket(AF_INET, SOCK_DGRAM, 0);
    udp_socket::send_from(third, to_first, "bye");
    ::close(third);
    poller.join();
    done.request_stop();
    for (std::thread& worker : workers) worker.join();
    for (const std::string& message : first.heard()) std::printf("first: %s\n", message.c_str());
    for (const std::string& message : second.heard()) std::printf("second: %s\n", message.c_str());
}
