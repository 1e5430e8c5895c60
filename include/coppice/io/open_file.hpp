// open_file: owns the descriptor of a socket, an acceptor, or a file; what they have in common.
#pragma once

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/internal/request.hpp>
#include <coppice/io/option.hpp>

#include <utility>

namespace coppice::io {

// Owns a descriptor of a context, or none. Move-only. Threads: any thread may start operations.
// Everything else is for the context's thread, or for one thread while none runs the context.
class open_file {
public:
    // Takes over a descriptor of `owner`; nullptr means none.
    explicit open_file(context& owner, internal::descriptor* d = nullptr) noexcept
        : owner_(&owner), descriptor_(d) {}
    open_file(open_file&& other) noexcept
        : owner_(other.owner_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
    open_file& operator=(open_file&& other) noexcept {
        if (this == &other) return *this;
        close();
        owner_ = other.owner_;
        descriptor_ = std::exchange(other.descriptor_, nullptr);
        return *this;
    }
    ~open_file() { close(); }

    // Closes the file. Pending operations end with operation_canceled in a later turn; the memory
    // that they were given must live until then.
    void close() noexcept {
        if (descriptor_ != nullptr) owner_->close(*std::exchange(descriptor_, nullptr));
    }
    // Returns true until the file is closed or moved from.
    bool is_open() const noexcept { return descriptor_ != nullptr; }
    // Returns the context that completes the operations.
    context& owner() const noexcept { return *owner_; }
    // Returns the kernel's descriptor, or -1 if none is open. This object still owns it.
    int native() const noexcept { return descriptor_ == nullptr ? -1 : descriptor_->fd; }

protected:
    internal::descriptor_reference reference() const noexcept { return {*owner_, descriptor_}; }

private:
    context* owner_;
    internal::descriptor* descriptor_ = nullptr;
};

namespace internal {

// The members that all sockets share. Errors of all functions: bad_file_descriptor if nothing is
// open.
class open_socket : public open_file {
public:
    using open_file::open_file;

    // Sets an option: one from option.hpp, or one that the program defines. Errors: the system's.
    template <socket_option Option>
    std::error_code set(const Option& option) noexcept {
        return owner().system().set_option(native(), Option::level, Option::name, option.data(),
                                           Option::size);
    }
    // Returns the option's current value in the kernel. Errors: the system's.
    template <socket_option Option>
    result<Option> get() const noexcept {
        Option option;
        const std::error_code error = owner().system().get_option(
            native(), Option::level, Option::name, option.data(), Option::size);
        if (error) return error;
        return option;
    }
    // Return the endpoints of this side and of the peer. Errors: thrown as std::system_error.
    endpoint local() const { return owner().system().local(native()).value_or_throw("local"); }
    endpoint remote() const { return owner().system().remote(native()).value_or_throw("remote"); }
};

}  // namespace internal

}  // namespace coppice::io
