// The system calls of io/socket.hpp that no loop has to wait for.
#include <coppice/io/socket.hpp>

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <system_error>

namespace coppice::io {

namespace {

[[noreturn]] void throw_errno(const char* what) {
    throw std::system_error(errno, std::system_category(), what);
}

// Closes the file unless it was given away.
class owned_fd : immovable {
public:
    explicit owned_fd(int fd) noexcept : fd_(fd) {}
    ~owned_fd() {
        if (fd_ >= 0) ::close(fd_);
    }
    int get() const noexcept { return fd_; }
    int give() noexcept { return std::exchange(fd_, -1); }

private:
    int fd_;
};

int new_socket(int family) {
    const int fd = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (fd < 0) throw_errno("socket");
    return fd;
}

void set_option(int fd, int level, int name, int value, const char* what) {
    if (::setsockopt(fd, level, name, &value, sizeof value) != 0) throw_errno(what);
}

descriptor* adopt(context& owner, owned_fd& fd) {
    const result<descriptor*> adopted = owner.adopt(fd.get());
    if (!adopted) throw std::system_error(adopted.error(), "a loop could not take the socket");
    (void)fd.give();
    return adopted.value();
}

}  // namespace

tcp::socket accept_operation::await_resume() {
    context& owner = *on->owner;
    report("accept");
    if (result < 0) return tcp::socket(owner);
    owned_fd fd(result);
    return {owner, adopt(owner, fd)};
}

namespace tcp {

connect_operation socket::connect(const endpoint& to, await_errors errors) {
    close();
    owned_fd fd(new_socket(to.family()));
    set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
    descriptor_ = adopt(*owner_, fd);
    return {descriptor_, to, errors};
}

void socket::shutdown_send() noexcept {
    if (descriptor_ != nullptr) ::shutdown(descriptor_->fd, SHUT_WR);
}

acceptor::acceptor(context& owner, const endpoint& at, acceptor_options options) : owner_(&owner) {
    owned_fd fd(new_socket(at.family()));
    set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
    // Accepted sockets inherit it, which saves a system call for each.
    set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
    const auto share = [&] { set_option(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT"); };
    if (options.share_port && !options.first_sharer) share();
    if (::bind(fd.get(), at.data(), at.size()) != 0) throw_errno("bind");
    if (options.share_port && options.first_sharer) share();
    if (::listen(fd.get(), options.backlog) != 0) throw_errno("listen");
    descriptor_ = adopt(owner, fd);
}

endpoint acceptor::local() const {
    COPPICE_CHECK(descriptor_ != nullptr, "local() of a closed acceptor");
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(descriptor_->fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        throw_errno("getsockname");
    }
    return endpoint::from(reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace tcp

}  // namespace coppice::io
