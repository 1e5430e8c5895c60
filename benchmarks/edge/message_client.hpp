// The client of the WebSocket measurements: as many messages under way as connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench_edge {

// Connections to /echo of the server at a port. The frames are made once, with a masking key that
// does not change, so that the client costs little.
class message_client {
public:
    // Exits the program if the server refuses a WebSocket.
    message_client(int port, std::size_t message_bytes, std::size_t connections);
    message_client(const message_client&) = delete;
    ~message_client();

    // Sends `count` binary messages, one at a time on each connection, and receives as many. Exits
    // the program if one does not come back as it was sent. Returns the seconds.
    double echo(int count);

private:
    struct connection {
        int fd = -1;
        std::size_t received = 0;  // of the message that comes
    };
    void send_to(const connection& c) const;
    bool receive_from(connection& c);

    std::string frame_;     // what is sent
    std::string expected_;  // what comes back
    std::vector<char> buffer_;
    std::vector<connection> all_;
    int poll_ = -1;
};

}  // namespace bench_edge
