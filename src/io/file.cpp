// Opening io/file.hpp.
#include <coppice/io/file.hpp>

#include <coppice/base/internal/file_name.hpp>
#include <coppice/io/whole_file.hpp>

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
    whole_name(path);
    const result<descriptor*> opened = open_by_name(owner, path, flags_of(mode), permissions);
    if (!opened) throw std::system_error(opened.error(), "open " + path);
    return open_file(owner, opened.value());
}

}  // namespace

file::file(context& owner, const std::string& path, open_mode mode, unsigned permissions)
    : open_file(open(owner, path, mode, permissions)) {}

}  // namespace coppice::io
