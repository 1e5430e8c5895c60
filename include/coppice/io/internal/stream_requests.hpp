// The requests of stream.hpp: what one receive or send does on its loop.
#pragma once

#include <coppice/io/buffer.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/internal/request.hpp>

#include <sys/socket.h>
#include <sys/uio.h>
#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

namespace coppice::io::internal {

struct transfer_arguments {
    transfer_arguments(const descriptor_reference& f, std::span<std::byte> bytes) noexcept
        : file(f), data(bytes.data()), size(bytes.size()) {}
    transfer_arguments(const descriptor_reference& f, std::span<const std::byte> bytes) noexcept
        : file(f), data(const_cast<std::byte*>(bytes.data())), size(bytes.size()) {}
    descriptor_reference file;
    std::byte* data;
    std::size_t size;
};

// Receives or sends one piece of memory. The value is the number of bytes. An empty piece ends at
// once.
template <opcode What>
class transfer_request : public descriptor_request<> {
public:
    using value_type = std::size_t;
    using arguments = transfer_arguments;
    static constexpr const char* name = What == opcode::send ? "send" : "receive";

    explicit transfer_request(const arguments& a) noexcept : descriptor_request<>(a.file, What) {
        data = a.data;
        size = a.size;
    }
    std::size_t take() const noexcept { return bytes(); }

protected:
    ~transfer_request() = default;

private:
    bool submit() noexcept final {
        if (size != 0 || on == nullptr) return descriptor_request<>::submit();
        set_outcome(0);
        return true;
    }
};
using receive_request = transfer_request<opcode::receive>;
using send_request = transfer_request<opcode::send>;

// Sends all of one piece of memory, in as many sends as the kernel needs.
class send_all_request : public descriptor_request<> {
public:
    using value_type = void;
    using arguments = transfer_arguments;
    static constexpr const char* name = "send_all";

    explicit send_all_request(const arguments& a) noexcept
        : descriptor_request<>(a.file, opcode::send) {
        data = a.data;
        size = a.size;
    }

protected:
    ~send_all_request() = default;

private:
    bool submit() noexcept final {
        if (size != 0 || on == nullptr) return descriptor_request<>::submit();
        set_outcome(0);
        return true;
    }
    int judge(int sent) noexcept final {
        if (sent < 0) return sent;
        data += sent;
        size -= static_cast<std::size_t>(sent);
        return size == 0 ? 0 : -EAGAIN;
    }
};

// Receives into a buffer of the context. The value is the buffer, empty at the end of the stream.
class pooled_receive_request : public descriptor_request<> {
public:
    using value_type = pooled_buffer;
    static constexpr const char* name = "receive";
    struct arguments {
        explicit arguments(const descriptor_reference& f) noexcept : file(f) {}
        descriptor_reference file;
    };
    explicit pooled_receive_request(const arguments& a) noexcept
        : descriptor_request<>(a.file, opcode::receive_pooled) {}
    pooled_buffer take() noexcept {
        if (outcome() <= 0) return {};
        return {owner().buffers(), data, static_cast<std::size_t>(outcome())};
    }

protected:
    ~pooled_receive_request() = default;
};

// Receives into several pieces of memory, one after the other. The value is the number of bytes.
class scatter_request : public descriptor_request<> {
public:
    using value_type = std::size_t;
    static constexpr const char* name = "receive";
    struct arguments {
        arguments(const descriptor_reference& f, std::span<const mutable_buffer> into) noexcept
            : file(f), buffers(into) {}
        descriptor_reference file;
        std::span<const mutable_buffer> buffers;
    };
    explicit scatter_request(const arguments& a) noexcept
        : descriptor_request<>(a.file, opcode::receive_message) {
        header_.msg_iov = reinterpret_cast<iovec*>(const_cast<mutable_buffer*>(a.buffers.data()));
        header_.msg_iovlen = a.buffers.size();
        message = &header_;
    }
    std::size_t take() const noexcept { return bytes(); }

protected:
    ~scatter_request() = default;

private:
    msghdr header_{};
};

// Sends several pieces of memory: all of them, or as much as the kernel takes at once; the value is
// then the number of bytes.
template <bool All>
class gather_request : public descriptor_request<> {
public:
    using value_type = std::conditional_t<All, void, std::size_t>;
    static constexpr const char* name = All ? "send_all" : "send";
    struct arguments {
        arguments(const descriptor_reference& f, std::span<const const_buffer> from) noexcept
            : file(f), buffers(from) {}
        descriptor_reference file;
        std::span<const const_buffer> buffers;
    };
    explicit gather_request(const arguments& a) noexcept
        : descriptor_request<>(a.file, opcode::send_message), left_(a.buffers) {
        message = &header_;
    }
    std::size_t take() const noexcept { return bytes(); }

protected:
    ~gather_request() = default;

private:
    static constexpr std::size_t pieces_max = 16;  // pieces in one system call

    bool submit() noexcept final {
        if (on != nullptr && !describe()) {
            set_outcome(0);
            return true;
        }
        return descriptor_request<>::submit();
    }
    int judge(int sent) noexcept final {
        if (!All || sent < 0) return sent;
        std::size_t bytes = static_cast<std::size_t>(sent);
        while (!left_.empty() && bytes >= left_.front().size() - begun_) {
            bytes -= left_.front().size() - begun_;
            begun_ = 0;
            left_ = left_.subspan(1);
        }
        begun_ += bytes;
        return describe() ? -EAGAIN : 0;
    }
    // Describes the next pieces to the kernel. Returns false if nothing is left.
    bool describe() noexcept {
        std::size_t count = 0;
        std::size_t bytes = 0;
        for (; count != left_.size() && count != pieces_max; ++count) {
            pieces_[count] = left_[count].kernels();
            bytes += pieces_[count].iov_len;
        }
        if (count == 0) return false;
        pieces_[0].iov_base = static_cast<std::byte*>(pieces_[0].iov_base) + begun_;
        pieces_[0].iov_len -= begun_;
        if (bytes == begun_) {  // all of these pieces are empty: look further
            begun_ = 0;
            left_ = left_.subspan(count);
            return describe();
        }
        header_.msg_iov = pieces_.data();
        header_.msg_iovlen = count;
        return true;
    }

    std::span<const const_buffer> left_;
    std::size_t begun_ = 0;  // bytes of the first piece that have been sent
    std::array<iovec, pieces_max> pieces_;
    msghdr header_{};
};

}  // namespace coppice::io::internal
