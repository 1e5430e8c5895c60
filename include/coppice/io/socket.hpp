// TCP sockets and acceptors, awaited from coroutines.
#pragma once
// A socket belongs to one context and is used on its thread. Each direction has at most one pending
// operation: one receive and one send may be under way together. The object that an operation
// returns holds its state; it is awaited where it was made, or not at all.
//
// Errors of every operation: thrown as std::system_error, or put into `ec` for use_await[ec].
// operation_canceled: the socket was closed, or its context ended, while the operation was pending.

#include <coppice/base/check.hpp>
#include <coppice/io/buffer.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/token/use_await.hpp>

#include <coroutine>
#include <cstddef>
#include <span>
#include <utility>

namespace coppice::io {

// The awaitable of one ring operation. Cost: no allocation; one system call at most per await.
class [[nodiscard]] await_operation : protected ring_operation {
public:
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine) noexcept {
        coroutine_ = coroutine;
        return !on->owner->start(*this);  // once pending, the loop may end the coroutine at once
    }

protected:
    await_operation(descriptor* d, opcode what, await_errors errors) noexcept
        : ring_operation(&resume, what), errors_(errors) {
        on = d;
    }
    void report(const char* what) const { errors_.report(result, what); }

private:
    static void resume(operation* op) noexcept {
        static_cast<await_operation*>(op)->coroutine_.resume();
    }
    std::coroutine_handle<> coroutine_;
    await_errors errors_;
};

// Receives or sends; gives the number of bytes.
class [[nodiscard]] transfer_operation final : public await_operation {
public:
    transfer_operation(descriptor* d, opcode what, std::byte* bytes, std::size_t count,
                       await_errors errors) noexcept
        : await_operation(d, what, errors) {
        data = bytes;
        size = count;
    }
    std::size_t await_resume() const {
        report(code == opcode::send ? "send" : "receive");
        return result < 0 ? 0 : static_cast<std::size_t>(result);
    }
};

// Receives into a buffer of the context; gives the buffer, empty at the end of the stream.
class [[nodiscard]] pooled_receive_operation final : public await_operation {
public:
    pooled_receive_operation(descriptor* d, await_errors errors) noexcept
        : await_operation(d, opcode::receive_pooled, errors) {}
    pooled_buffer await_resume() const {
        report("receive");
        if (result <= 0) return {};
        return {on->owner->buffers(), data, static_cast<std::size_t>(result)};
    }
};

// Sends all bytes of a span, in as many sends as the kernel takes.
class [[nodiscard]] send_all_operation final : ring_operation {
public:
    send_all_operation(descriptor* d, std::span<const std::byte> bytes,
                       await_errors errors) noexcept
        : ring_operation(&resume, opcode::send), errors_(errors) {
        on = d;
        data = const_cast<std::byte*>(bytes.data());
        size = bytes.size();
    }
    bool await_ready() const noexcept { return size == 0; }
    bool await_suspend(std::coroutine_handle<> coroutine) noexcept {
        coroutine_ = coroutine;
        return !advance();
    }
    void await_resume() const { errors_.report(result, "send_all"); }

private:
    // True: everything is sent, or an error ended it.
    bool advance() noexcept {
        while (on->owner->start(*this)) {
            if (taken()) return true;
        }
        return false;
    }
    // Accounts for what the last send took. True: nothing is left to do.
    bool taken() noexcept {
        if (result < 0) return true;
        data += result;
        size -= static_cast<std::size_t>(result);
        return size == 0;
    }
    static void resume(operation* op) noexcept {
        send_all_operation* const self = static_cast<send_all_operation*>(op);
        if (self->taken() || self->advance()) self->coroutine_.resume();
    }
    std::coroutine_handle<> coroutine_;
    await_errors errors_;
};

class [[nodiscard]] connect_operation final : public await_operation {
public:
    connect_operation(descriptor* d, const endpoint& to, await_errors errors) noexcept
        : await_operation(d, opcode::connect, errors), to_(to) {}
    bool await_suspend(std::coroutine_handle<> coroutine) noexcept {
        // Const in spirit: the kernel only reads it.
        peer = reinterpret_cast<sockaddr_storage*>(const_cast<sockaddr*>(to_.data()));
        peer_size = to_.size();
        return await_operation::await_suspend(coroutine);
    }
    void await_resume() const { report("connect"); }

private:
    endpoint to_;
};

class accept_operation;

namespace tcp {

// A connected stream. Move-only; a moved-from socket is closed. TCP_NODELAY is on.
class socket {
public:
    explicit socket(context& owner) noexcept : owner_(&owner) {}
    socket(socket&& other) noexcept
        : owner_(other.owner_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
    socket& operator=(socket&& other) noexcept {
        close();
        owner_ = other.owner_;
        descriptor_ = std::exchange(other.descriptor_, nullptr);
        return *this;
    }
    ~socket() { close(); }

    // Connects to the endpoint; a socket that was open is closed first.
    connect_operation connect(const endpoint& to, await_errors errors = use_await);

    // Receives into `bytes`; 0 at the end of the stream, or when `bytes` is empty.
    transfer_operation receive(std::span<std::byte> bytes,
                               await_errors errors = use_await) noexcept {
        return {open(), opcode::receive, bytes.data(), bytes.size(), errors};
    }
    // Receives into a buffer lent by the context, so that waiting needs no memory.
    pooled_receive_operation receive_pooled(await_errors errors = use_await) noexcept {
        return {open(), errors};
    }
    // Sends some of `bytes`; gives how many.
    transfer_operation send(std::span<const std::byte> bytes,
                            await_errors errors = use_await) noexcept {
        return {open(), opcode::send, const_cast<std::byte*>(bytes.data()), bytes.size(), errors};
    }
    // Sends all of `bytes`.
    send_all_operation send_all(std::span<const std::byte> bytes,
                                await_errors errors = use_await) noexcept {
        return {open(), bytes, errors};
    }
    // Says that nothing more will be sent; receiving goes on. Errors: none that matters to the
    // caller: a connection that is gone says so on the next receive.
    void shutdown_send() noexcept;
    // Ends pending operations with operation_canceled, in a coming turn.
    void close() noexcept {
        if (descriptor_ != nullptr) owner_->close(*std::exchange(descriptor_, nullptr));
    }
    bool is_open() const noexcept { return descriptor_ != nullptr; }
    // The context that completes this socket's operations.
    context& owner() const noexcept { return *owner_; }

private:
    friend class io::accept_operation;
    socket(context& owner, descriptor* d) noexcept : owner_(&owner), descriptor_(d) {}
    descriptor* open() const noexcept {
        COPPICE_CHECK(descriptor_ != nullptr, "an operation on a closed socket");
        return descriptor_;
    }
    context* owner_;
    descriptor* descriptor_ = nullptr;
};

}  // namespace tcp

// Gives the connection that has come in. A failure leaves the acceptor open: with too many files
// open (EMFILE, ENFILE) wait before the next accept.
class [[nodiscard]] accept_operation final : public await_operation {
public:
    accept_operation(descriptor* d, await_errors errors) noexcept
        : await_operation(d, opcode::accept, errors) {}
    tcp::socket await_resume();
};

namespace tcp {

struct acceptor_options {
    acceptor_options() noexcept {}
    // Several acceptors may listen on the port, and the kernel spreads connections over them. The
    // first of them is told so: it binds alone, so that a port in use is an error even if its owner
    // shares it, and opens the port to the others afterwards.
    bool share_port = false;
    bool first_sharer = false;
    int backlog = 4096;  // connections that wait to be accepted
};

// Listens on an endpoint. Errors of the constructor: std::system_error, e.g. address_in_use.
class acceptor {
public:
    acceptor(context& owner, const endpoint& at, acceptor_options options = {});
    acceptor(acceptor&& other) noexcept
        : owner_(other.owner_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
    acceptor& operator=(acceptor&&) = delete;
    ~acceptor() { close(); }

    accept_operation accept(await_errors errors = use_await) noexcept {
        COPPICE_CHECK(descriptor_ != nullptr, "accept on a closed acceptor");
        return {descriptor_, errors};
    }
    // The endpoint that it listens on, with the port that the system chose.
    endpoint local() const;
    void close() noexcept {
        if (descriptor_ != nullptr) owner_->close(*std::exchange(descriptor_, nullptr));
    }

private:
    context* owner_;
    descriptor* descriptor_ = nullptr;
};

}  // namespace tcp

}  // namespace coppice::io
