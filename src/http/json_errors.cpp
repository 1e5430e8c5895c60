// The filter that turns error texts into JSON.
#include <coppice/base/internal/json_string.hpp>
#include <coppice/http/filters.hpp>

#include <string>

namespace coppice::http {

namespace {

class json_errors_filter final : public filter {
public:
    void after(const request&, response& answer) const override {
        if (answer.status() < 400 || answer.source() != nullptr) return;
        if (!answer.content_type().empty() && !answer.content_type().starts_with("text/plain")) {
            return;
        }
        std::string text = "{\"error\":";
        text += internal::json_string(answer.body().empty() ? reason_phrase(answer.status())
                                                            : answer.body());
        answer.body(text += '}').content_type("application/json");
    }
};

}  // namespace

std::shared_ptr<const filter> json_errors() {
    return std::make_shared<json_errors_filter>();
}

}  // namespace coppice::http
