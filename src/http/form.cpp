// The check of application/x-www-form-urlencoded bodies.
#include "media_type.hpp"

#include <coppice/http/form.hpp>

#include <algorithm>

namespace coppice::http {

using namespace internal;

urlencoded_form::urlencoded_form(const request& r, std::size_t fields_max) : text_(r.body()) {
    const std::optional<std::string_view> field = only_content_type(r);
    std::string_view parameters;
    const std::optional<std::string_view> type =
        field ? take_media_type(*field, parameters) : std::nullopt;
    if (!type || !equals_ignoring_case(*type, "application/x-www-form-urlencoded")) {
        throw status_error(415, "the body must be application/x-www-form-urlencoded");
    }
    for (std::string_view rest = text_; !rest.empty();) {
        const std::string_view item = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(item.size() + 1, rest.size()));
        if (item.empty()) continue;
        if (size_ == fields_max) throw status_error(413, "the form has too many fields");
        ++size_;
        const auto is_text = [](char byte) { return byte != '\0'; };
        if (!percent_decode_each(item, plus_sign::space, is_text)) {
            throw bad_request("the form has a malformed escape, or a NUL");
        }
    }
}

}  // namespace coppice::http
