// Opening io/file.hpp.
#include <coppice/io/file.hpp>

#include <coppice/base/file_name.hpp>

#include <fcntl.h>
#include <system_error>

namespace coppice::io {

using namespace internal;

namespace {

int flags_of(open_mode mode) noexcept {
    switch (mode) {
        case open_mode::read_only:
            return O_RDONLY;
        case open_mode::read_write:
            return O_RDWR;
        case open_mode::create:
            return O_RDWR | O_CREAT;
        case open_mode::truncate:
            return O_RDWR | O_CREAT | O_TRUNC;
        case open_mode::create_only:
            return O_RDWR | O_CREAT | O_EXCL;
    }
    return O_RDONLY;
}

open_file open(context& owner, const std::string& path, open_mode mode, unsigned permissions) {
    const int fd = owner.system()
                       .open(whole_name(path), flags_of(mode), permissions)
                       .value_or_throw("a file could not be opened");
    const result<descriptor*> adopted = owner.adopt(fd, false);
    if (!adopted) {
        owner.system().close(fd);
        throw std::system_error(adopted.error(), "a loop could not take the file");
    }
    return open_file(owner, adopted.value());
}

}  // namespace

file::file(context& owner, const std::string& path, open_mode mode, unsigned permissions)
    : open_file(open(owner, path, mode, permissions)) {}

}  // namespace coppice::io
