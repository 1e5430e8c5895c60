// The CORS protocol of http/filters.hpp.
#include <coppice/http/filters.hpp>

#include <algorithm>
#include <stdexcept>

namespace coppice::http {

namespace {

std::string joined(const std::vector<std::string>& parts) {
    std::string text;
    for (const std::string& part : parts) {
        if (!text.empty()) text += ", ";
        text += part;
    }
    return text;
}

constexpr std::chrono::seconds::rep delta_seconds_max = 2'147'483'647;  // RFC 9111 section 1.2.2

class cors_filter final : public filter {
public:
    explicit cors_filter(cors_options options)
        : options_(std::move(options)),
          any_(std::ranges::find(options_.origins, "*") != options_.origins.end()),
          methods_(joined(options_.methods)),
          fields_(joined(options_.fields)),
          exposed_(joined(options_.exposed)),
          age_(std::to_string(
              std::clamp<std::chrono::seconds::rep>(options_.age.count(), 0, delta_seconds_max))) {
        if (any_ && options_.credentials) {
            throw std::invalid_argument("cors: credentials need named origins, not \"*\"");
        }
        // Finds texts that cannot be sent now, and not at the first request.
        response check(204);
        for (const std::string& origin : options_.origins) check.add("Origin", origin);
        check.add("Methods", methods_).add("Fields", fields_).add("Exposed", exposed_);
    }

    std::optional<response> before(const request& r) const override {
        const auto wanted = r.find("Access-Control-Request-Method");
        if (r.verb() != method::options || !r.find("Origin") || !wanted) return std::nullopt;
        response answer(204);
        if (!permits(*r.find("Origin"))) return answer;
        answer.add("Access-Control-Allow-Methods", methods_);
        if (!fields_.empty()) answer.add("Access-Control-Allow-Headers", fields_);
        answer.add("Access-Control-Max-Age", age_);
        return answer;
    }

    void after(const request& r, response& answer) const override {
        // An answer that depends on a request field names it in Vary, also if it is missing.
        if (!any_) answer.add("Vary", "Origin");
        const auto origin = r.find("Origin");
        if (!origin || !permits(*origin)) return;
        answer.add("Access-Control-Allow-Origin", any_ ? "*" : *origin);
        if (options_.credentials) answer.add("Access-Control-Allow-Credentials", "true");
        if (!exposed_.empty()) answer.add("Access-Control-Expose-Headers", exposed_);
    }

private:
    bool permits(std::string_view origin) const {
        return any_ || std::ranges::find(options_.origins, origin) != options_.origins.end();
    }
    const cors_options options_;
    const bool any_;
    const std::string methods_, fields_, exposed_, age_;
};

}  // namespace

std::shared_ptr<const filter> cors(cors_options options) {
    return std::make_shared<cors_filter>(std::move(options));
}

}  // namespace coppice::http
