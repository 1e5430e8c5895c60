// inflated: decodes what the server has compressed.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace coppice::test {

// Returns the text of gzip or zlib, told by its header; "broken" unless it is whole, or has more
// than `most` bytes.
inline std::string inflated(std::string_view packed, std::size_t most = std::size_t{1} << 22) {
    z_stream stream{};
    ::inflateInit2(&stream, 15 + 32);
    std::string out(most, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int status = ::inflate(&stream, Z_FINISH);
    out.resize(out.size() - stream.avail_out);
    ::inflateEnd(&stream);
    return status == Z_STREAM_END && stream.avail_in == 0 ? out : "broken";
}

}  // namespace coppice::test
