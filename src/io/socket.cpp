// Opening the sockets of io/socket.hpp and io/datagram.hpp, and what a datagram brings.
#include <coppice/io/datagram.hpp>
#include <coppice/io/socket.hpp>

#include <fcntl.h>
#include <cerrno>
#include <system_error>

namespace coppice::io {

using namespace internal;

namespace {

[[noreturn]] void fail(std::error_code error, const char* what) {
    throw std::system_error(error, what);
}
void check(std::error_code error, const char* what) {
    if (error) fail(error, what);
}
void check_at(std::error_code error, const char* what, const endpoint& at) {
    if (error) throw std::system_error(error, what + at.to_string());
}

// A socket that no open_socket owns yet. The destructor closes it, unless give() was called.
class loose_socket : immovable {
public:
    loose_socket(context& owner, int family, int type) : owner_(owner) {
        const result<int> fd = owner.system().socket(family, type, 0);
        if (!fd) fail(fd.error(), "socket");
        fd_ = fd.value();
    }
    // Makes a duplicate of an open descriptor.
    loose_socket(context& owner, int original)
        : owner_(owner), fd_(::fcntl(original, F_DUPFD_CLOEXEC, 0)) {
        if (fd_ < 0) fail({errno, std::system_category()}, "dup");
    }
    ~loose_socket() {
        if (fd_ >= 0) owner_.system().close(fd_);
    }
    template <class Option>
    void set(const Option& option, const char* what) {
        check(owner_.system().set_option(fd_, Option::level, Option::name, option.data(),
                                         Option::size),
              what);
    }
    int get() const noexcept { return fd_; }
    open_socket give() {
        const result<descriptor*> adopted = owner_.adopt(fd_);
        if (!adopted) fail(adopted.error(), "a loop could not take the socket");
        fd_ = -1;
        return open_socket(owner_, adopted.value());
    }

private:
    context& owner_;
    int fd_ = -1;
};

bool is_ip(const endpoint& e) noexcept {
    return e.is_v4() || e.is_v6();
}

}  // namespace

namespace internal {

open_socket listen_at(context& owner, const endpoint& at, const acceptor_options& options) {
    if (options.already_listening >= 0) {
        return loose_socket(owner, options.already_listening).give();
    }
    loose_socket s(owner, at.family(), SOCK_STREAM);
    if (is_ip(at)) {
        s.set(reuse_address(true), "SO_REUSEADDR");
        // Accepted sockets inherit the option, which saves a system call for each.
        s.set(no_delay(true), "TCP_NODELAY");
    }
    const bool first = options.share_port && options.first_sharer;
    if (options.share_port && !first) s.set(reuse_port(true), "SO_REUSEPORT");
    check_at(owner.system().bind(s.get(), at), "bind ", at);
    if (first) s.set(reuse_port(true), "SO_REUSEPORT");
    check_at(owner.system().listen(s.get(), options.backlog), "listen ", at);
    return s.give();
}

open_socket bind_datagrams(context& owner, const endpoint& at) {
    loose_socket s(owner, at.family(), SOCK_DGRAM);
    check_at(owner.system().bind(s.get(), at), "bind ", at);
    return s.give();
}

received_datagram receive_from_request::take() const noexcept {
    received_datagram got;
    if (outcome() < 0) return got;
    got.size = bytes();
    got.from = endpoint::from(reinterpret_cast<const sockaddr*>(&from_), header_.msg_namelen);
    return got;
}

}  // namespace internal

}  // namespace coppice::io
