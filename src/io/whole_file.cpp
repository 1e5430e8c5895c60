// Opening files by name, and the files that io/whole_file.hpp writes.
#include <coppice/io/internal/whole_file_requests.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace coppice::io::internal {

namespace {

constexpr unsigned attempts_max = 16;  // attempts to find a free name for a new file

// Rejects a path with a NUL, for calls that take a C string.
int whole(std::string_view path) noexcept {
    return path.find('\0') == path.npos ? 0 : EINVAL;
}

}  // namespace

result<descriptor*> open_by_name(context& owner, std::string_view path, int flags,
                                 unsigned permissions) noexcept {
    if (whole(path) != 0) return std::errc::invalid_argument;
    try {
        auto name = std::make_unique<const std::string>(path);
        const result<int> fd = owner.system().open(name->c_str(), flags, permissions);
        if (!fd) return fd.error();
        const result<descriptor*> adopted = owner.adopt(fd.value(), false);
        if (!adopted) {
            owner.system().close(fd.value());
            if ((flags & O_EXCL) != 0) owner.system().remove(name->c_str());
            return adopted.error();
        }
        adopted.value()->name = std::move(name);
        return adopted;
    } catch (const std::bad_alloc&) {
        return std::errc::not_enough_memory;
    }
}

result<descriptor*> open_to_read(context& owner, std::string_view path) noexcept {
    return open_by_name(owner, path, O_RDONLY, 0);
}

write_file_request::~write_file_request() {
    if (opened_ != nullptr) owner().close(*opened_);
    if (!new_file_.empty()) owner().system().remove(new_file_.c_str());
}

bool write_file_request::submit() noexcept {
    if (whole(path_) != 0) {
        set_outcome(-EINVAL);
        return true;
    }
    coppice::internal::result<descriptor*> made = std::errc::file_exists;
    try {
        for (unsigned i = 0; i != attempts_max && made.error() == std::errc::file_exists; ++i) {
            name_new_file(i);
            made = open_by_name(owner(), new_file_, O_WRONLY | O_CREAT | O_EXCL, permissions_);
        }
    } catch (const std::bad_alloc&) {
        made = std::errc::not_enough_memory;
    }
    if (!made) {
        new_file_.clear();
        set_outcome(-made.error().value());
        return true;
    }
    use(*made.value());
    return write_all_request::submit();
}

void write_file_request::use(descriptor& d) noexcept {
    if (opened_ != nullptr) owner().close(*opened_);
    opened_ = &d;
    refer_to(d);
}

std::string_view write_file_request::folder() const noexcept {
    const std::size_t slash = path_.rfind('/');
    return slash == path_.npos ? std::string_view() : path_.substr(0, slash + 1);
}

// Two processes, or two operations, hardly ever choose the same name. If they do, one tries again.
void write_file_request::name_new_file(unsigned attempt) {
    constexpr char digits[] = "0123456789abcdef";
    const auto ticks = static_cast<std::uint64_t>(owner().now().time_since_epoch().count());
    std::uint64_t value = ticks ^ static_cast<std::uint64_t>(::getpid()) << 40 ^
                          reinterpret_cast<std::uintptr_t>(this) << 8;
    value = (value + attempt) * 0x9e3779b97f4a7c15;
    new_file_ = folder();
    new_file_ += ".coppice-";
    for (int shift = 60; shift >= 0; shift -= 4) new_file_ += digits[value >> shift & 15];
}

int write_file_request::judge(int returned) noexcept {
    if (stage_ == stage::writing) return write_all_request::judge(returned);
    if (stage_ == stage::renamed) return returned;
    if (is_interruption(returned)) return -EAGAIN;
    if (returned < 0) return returned;
    // The bytes are on the disk, but a stop has come: the old file stays.
    return stop_came() ? -ECANCELED : rename();
}

// After the renaming, a stop comes too late.
void write_file_request::interrupt() noexcept {
    if (stage_ != stage::renamed) write_all_request::interrupt();
}

int write_file_request::written() noexcept {
    if (!sync_) return rename();
    stage_ = stage::syncing;
    code = opcode::sync;
    return -EAGAIN;
}

int write_file_request::rename() noexcept {
    try {
        const std::string path(path_);
        const std::error_code error = owner().system().replace(new_file_.c_str(), path.c_str());
        if (error) return -error.value();
    } catch (const std::bad_alloc&) {
        return -ENOMEM;
    }
    new_file_.clear();
    return sync_ ? sync_folder() : 0;
}

// Called when the name is in the folder: the folder must reach the disk too.
int write_file_request::sync_folder() noexcept {
    stage_ = stage::renamed;
    const std::string_view where = folder();
    const coppice::internal::result<descriptor*> opened =
        open_by_name(owner(), where.empty() ? "." : where, O_RDONLY | O_DIRECTORY, 0);
    if (!opened) return -opened.error().value();
    use(*opened.value());
    return -EAGAIN;
}

}  // namespace coppice::io::internal
