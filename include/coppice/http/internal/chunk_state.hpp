// chunk_state: where in the framing of a chunked body the bytes so far ended.
#pragma once

#include <coppice/base/internal/namespaces.hpp>

namespace coppice::http::internal {

enum class chunk_state : unsigned char {
    size_first,
    size_digits,
    size_lf,
    extension_start,
    extension_name,
    extension_name_space,
    extension_value_start,
    extension_value,
    extension_quoted,
    extension_escape,
    extension_quoted_end,
    extension_value_space,
    data,
    data_cr,
    data_lf,
    trailer_start,
    trailer_name,
    trailer_value,
    trailer_lf,
    end_lf,
    complete,
    failed
};

}  // namespace coppice::http::internal
