// multipart_state: where in a multipart body the bytes so far ended.
#pragma once

#include <coppice/base/internal/namespaces.hpp>

namespace coppice::http::internal {

enum class multipart_state : unsigned char {
    preamble,
    boundary,
    one_dash,
    padding,
    line_feed,
    last_padding,
    last_line_feed,
    fields,
    content,
    epilogue,
    failed
};

}  // namespace coppice::http::internal
