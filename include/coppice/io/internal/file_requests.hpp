// The requests of file.hpp: what one read or write does on its loop.
#pragma once
// The system may read or write less than it was asked to. read_at() and write_at() of file.hpp
// report how much. The other operations continue until everything is done. Each of their reads and
// writes is at most 1 MiB. A stop or the deadline takes effect between two of them.

#include <coppice/io/context.hpp>
#include <coppice/io/internal/request.hpp>
#include <coppice/io/internal/workers.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <span>
#include <string>
#include <utility>

namespace coppice::io::internal {

// Reads or writes one piece of memory. The value is the number of bytes: fewer than asked for only
// at the end of the file, on a full disk, or after a signal.
template <opcode What>
class file_transfer_request : public descriptor_request<file_operation> {
public:
    using value_type = std::size_t;
    static constexpr const char* name = What == opcode::read_at ? "read_at" : "write_at";
    struct arguments {
        arguments(const descriptor_reference& f, std::uint64_t o,
                  std::span<const std::byte> b) noexcept
            : file(f), offset(o), bytes(b) {}
        descriptor_reference file;
        std::uint64_t offset;
        std::span<const std::byte> bytes;
    };
    explicit file_transfer_request(const arguments& a) noexcept
        : descriptor_request<file_operation>(a.file, What) {
        data = const_cast<std::byte*>(a.bytes.data());
        size = a.bytes.size();
        offset = a.offset;
    }
    std::string subject() const { return file_name(); }
    std::size_t take() const noexcept { return bytes(); }

protected:
    ~file_transfer_request() = default;

private:
    using base = descriptor_request<file_operation>;
    // Rejects the last offset, which to io_uring would mean the file's own position.
    bool submit() noexcept final {
        if (offset <= offset_max) return base::submit();
        this->set_outcome(-EINVAL);
        return true;
    }
    static constexpr std::uint64_t offset_max = std::numeric_limits<std::int64_t>::max();
};

// Waits until everything written before is on the disk.
class file_sync_request : public descriptor_request<file_operation> {
public:
    using value_type = void;
    static constexpr const char* name = "sync";
    struct arguments {
        explicit arguments(const descriptor_reference& f) noexcept : file(f) {}
        descriptor_reference file;
    };
    explicit file_sync_request(const arguments& a) noexcept
        : descriptor_request<file_operation>(a.file, opcode::sync) {}
    std::string subject() const { return file_name(); }

protected:
    ~file_sync_request() = default;
};

// A file operation that consists of several reads or writes. Errors: those of file::read_at().
class long_transfer : public descriptor_request<file_operation> {
protected:
    long_transfer(const descriptor_reference& f, opcode what) noexcept
        : descriptor_request<file_operation>(f, what) {}
    ~long_transfer() = default;

    bool submit() noexcept override;
    // Prepares the next read or write: `left` bytes at `at`, or the first 1 MiB of them.
    void go_on_at(std::byte* at, std::size_t left) noexcept;
    // For judge(): returns true if a signal came and nothing was done.
    static bool is_interruption(int returned) noexcept;
};

// Reads to the end of the file, into memory that grows.
class growing_read : public long_transfer {
protected:
    growing_read(const descriptor_reference& f, std::uint64_t from, std::size_t size_max) noexcept
        : long_transfer(f, opcode::read_at), left_max_(size_max) {
        offset = from;
    }
    ~growing_read() = default;

    bool submit() noexcept override;

private:
    // Makes the memory `length` bytes long. Returns its address, or nullptr if there is not enough
    // memory. Shrinking always succeeds.
    virtual std::byte* resize(std::size_t length) noexcept = 0;
    int judge(int returned) noexcept final;
    bool reserve(std::size_t room) noexcept;

    const std::size_t left_max_;
    std::byte* memory_ = nullptr;
    std::size_t room_ = 0;
    std::size_t read_ = 0;
};

// Reads to the end of the file. The value is the bytes, none after an error.
template <class Bytes>
class read_all_request : public growing_read {
public:
    using value_type = Bytes;
    static constexpr const char* name = "read_all";
    struct arguments {
        arguments(const descriptor_reference& f, std::uint64_t o, std::size_t m) noexcept
            : file(f), offset(o), size_max(m) {}
        descriptor_reference file;
        std::uint64_t offset;
        std::size_t size_max;
    };
    explicit read_all_request(const arguments& a) noexcept
        : growing_read(a.file, a.offset, a.size_max) {}
    std::string subject() const { return file_name(); }
    Bytes take() noexcept { return outcome() < 0 ? Bytes() : std::move(bytes_); }

protected:
    ~read_all_request() = default;

private:
    std::byte* resize(std::size_t length) noexcept final {
        try {
            bytes_.resize(length);
        } catch (const std::exception&) {  // longer than any memory, or than what is free
            return nullptr;
        }
        return reinterpret_cast<std::byte*>(bytes_.data());
    }
    Bytes bytes_;
};

// Reads until the memory is full, or to the end of the file. The value is the number of bytes, also
// after an error or a stop.
class fill_request : public long_transfer {
public:
    using value_type = std::size_t;
    static constexpr const char* name = "read_all";
    struct arguments {
        arguments(const descriptor_reference& f, std::uint64_t o, std::span<std::byte> b) noexcept
            : file(f), offset(o), bytes(b) {}
        descriptor_reference file;
        std::uint64_t offset;
        std::span<std::byte> bytes;
    };
    explicit fill_request(const arguments& a) noexcept
        : long_transfer(a.file, opcode::read_at), into_(a.bytes) {
        offset = a.offset;
        go_on_at(into_.data(), into_.size());
    }
    std::string subject() const { return file_name(); }
    std::size_t take() const noexcept { return read_; }

protected:
    ~fill_request() = default;

private:
    int judge(int returned) noexcept final;

    const std::span<std::byte> into_;
    std::size_t read_ = 0;
};

// Writes all of the memory.
class write_all_request : public long_transfer {
public:
    using value_type = void;
    static constexpr const char* name = "write_all";
    struct arguments {
        arguments(const descriptor_reference& f, std::uint64_t o,
                  std::span<const std::byte> b) noexcept
            : file(f), offset(o), bytes(b) {}
        descriptor_reference file;
        std::uint64_t offset;
        std::span<const std::byte> bytes;
    };
    explicit write_all_request(const arguments& a) noexcept
        : long_transfer(a.file, opcode::write_at), left_(a.bytes) {
        offset = a.offset;
        go_on_at(const_cast<std::byte*>(left_.data()), left_.size());
    }
    std::string subject() const { return file_name(); }

protected:
    ~write_all_request() = default;
    // Called when all is written. Returns the operation's result, or -EAGAIN to continue with
    // another ring operation.
    virtual int written() noexcept { return 0; }
    int judge(int returned) noexcept override;

private:
    std::span<const std::byte> left_;
};

}  // namespace coppice::io::internal
