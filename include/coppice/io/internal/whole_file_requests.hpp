// The requests of whole_file.hpp: open, read or write, and rename, in one operation.
#pragma once

#include <coppice/base/internal/result.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/internal/file_requests.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace coppice::io::internal {

// Opens a file and hands it to the loop; `flags` are those of open(2). Errors: invalid_argument for
// a NUL in the name; invalid_seek for a file without offsets (a pipe, a terminal).
result<descriptor*> open_by_name(context& owner, std::string_view path, int flags,
                                 unsigned permissions) noexcept;
result<descriptor*> open_to_read(context& owner, std::string_view path) noexcept;

// Opens a file, reads to its end, and closes it.
template <class Bytes>
class read_file_request : public read_all_request<Bytes> {
    using base = read_all_request<Bytes>;

public:
    static constexpr const char* name = "read_file";
    struct arguments {
        arguments(context& c, std::string_view p, std::uint64_t o, std::size_t m) noexcept
            : owner(&c), path(p), offset(o), size_max(m) {}
        context* owner;
        std::string_view path;
        std::uint64_t offset;
        std::size_t size_max;
    };
    explicit read_file_request(const arguments& a) noexcept
        : base(typename base::arguments(descriptor_reference(*a.owner), a.offset, a.size_max)),
          path_(a.path) {}
    std::string subject() const { return std::string(path_); }

protected:
    ~read_file_request() {
        if (opened_ != nullptr) this->owner().close(*opened_);
    }

private:
    bool submit() noexcept final {
        const coppice::internal::result<descriptor*> opened = open_to_read(this->owner(), path_);
        if (!opened) {
            this->set_outcome(-opened.error().value());
            return true;
        }
        opened_ = opened.value();
        this->refer_to(*opened_);
        return base::submit();
    }

    const std::string_view path_;
    descriptor* opened_ = nullptr;
};

// Writes a new file, then renames it.
class write_file_request : public write_all_request {
public:
    static constexpr const char* name = "write_file";
    struct arguments {
        arguments(context& c, std::string_view p, std::span<const std::byte> b, bool s,
                  unsigned m) noexcept
            : owner(&c), path(p), bytes(b), sync(s), permissions(m) {}
        context* owner;
        std::string_view path;
        std::span<const std::byte> bytes;
        bool sync;
        unsigned permissions;
    };
    explicit write_file_request(const arguments& a) noexcept
        : write_all_request({descriptor_reference(*a.owner), 0, a.bytes}),
          path_(a.path),
          sync_(a.sync),
          permissions_(a.permissions) {}
    std::string subject() const { return std::string(path_); }

protected:
    // Removes the new file, unless it has been renamed.
    ~write_file_request();

private:
    enum class stage { writing, syncing, renamed };
    bool submit() noexcept final;
    void interrupt() noexcept final;
    int judge(int returned) noexcept final;
    int written() noexcept final;
    int rename() noexcept;
    int sync_folder() noexcept;
    std::string_view folder() const noexcept;
    void name_new_file(unsigned attempt);
    void use(descriptor& d) noexcept;

    const std::string_view path_;
    const bool sync_;
    const unsigned permissions_;
    descriptor* opened_ = nullptr;  // the new file; at the end, its folder
    std::string new_file_;          // its name, while it exists
    stage stage_ = stage::writing;
};

}  // namespace coppice::io::internal
