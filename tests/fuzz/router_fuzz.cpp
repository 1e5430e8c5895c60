// http/router.hpp: the tree finds what a plain search through all patterns finds, and no parameter
// that it returns leads to a parent directory.
#include <coppice/http/router.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "guarded_bytes.hpp"
#include "verify.hpp"

namespace {

using namespace coppice;
using http::method;
using http::internal::match_status;
using test::verify;
using test::verify_equal;

std::vector<std::string> split(std::string_view text) {  // at slashes, after the first
    std::vector<std::string> segments;
    for (std::size_t at = 0; at != text.npos;) {
        const std::size_t next = text.find('/', at + 1);
        segments.emplace_back(text.substr(at + 1, next - at - 1));
        at = next;
    }
    return segments;
}

std::optional<std::string> decoded(std::string_view text) {
    std::string out;
    if (!http::percent_decode(text, out)) return std::nullopt;
    return out;
}

bool leads_astray(std::string_view path) {
    const std::optional<std::string> plain = decoded(path);
    if (!plain || plain->find('\0') != plain->npos) return true;
    for (const std::string& segment : split(*plain)) {
        if (segment == "." || segment == "..") return true;
    }
    return false;
}

struct route {
    std::size_t number;
    method verb;
    std::string pattern;
};

// Returns how well a pattern matches: one letter per segment, smaller for a better kind, and then
// the parameters. Returns nothing if it does not match.
struct fit {
    std::string kinds;
    std::string parameters;
};

std::optional<fit> compare(const std::string& pattern, const std::string& path) {
    const std::vector<std::string> wanted = split(pattern);
    const std::vector<std::string> given = split(path);
    fit result;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (i >= given.size()) return std::nullopt;
        const std::string& segment = wanted[i];
        std::string value = given[i];
        if (!segment.starts_with('{')) {
            if (decoded(value) != segment) return std::nullopt;
            result.kinds += 'a';
            continue;
        }
        const bool rest = segment.ends_with("...}");
        const bool integer = segment.ends_with(":int}");
        if (rest) {
            for (std::size_t j = i + 1; j < given.size(); ++j) value += "/" + given[j];
        } else if (integer ? !http::parse_integer<std::int64_t>(value) : value.empty()) {
            return std::nullopt;
        }
        const std::size_t end = segment.find_first_of(":.}");
        result.kinds += rest ? 'd' : integer ? 'b' : 'c';
        result.parameters += " " + segment.substr(1, end - 1) + "=" + value;
        if (rest) return result;
    }
    if (given.size() > wanted.size()) return std::nullopt;
    return result;
}

std::string expected(const std::vector<route>& routes, method verb, const std::string& path) {
    if (!path.starts_with('/')) return "not found";
    if (leads_astray(path)) return "bad path";
    std::optional<fit> best;
    std::size_t number = 0;
    bool best_is_own = false;  // HEAD's own route comes before a GET that answers HEAD
    http::internal::method_set allowed;
    for (const route& r : routes) {
        const std::optional<fit> found = compare(r.pattern, path);
        if (!found) continue;
        allowed.insert(r.verb);
        if (r.verb == method::get) allowed.insert(method::head);
        const bool own = r.verb == verb;
        if (!own && !(verb == method::head && r.verb == method::get)) continue;
        if (!best || found->kinds < best->kinds ||
            (found->kinds == best->kinds && own && !best_is_own)) {
            best = found;
            best_is_own = own;
            number = r.number;
        }
    }
    if (best) return "route " + std::to_string(number) + best->parameters;
    return allowed.empty() ? "not found" : "allow " + allowed.to_string();
}

std::string actual(const http::internal::route_table<std::size_t>& table, method verb,
                   std::string_view path) {
    const auto match = table.match(verb, path);
    if (match.status == match_status::not_found) return "not found";
    if (match.status == match_status::bad_path) return "bad path";
    if (match.status == match_status::method_not_allowed)
        return "allow " + match.allowed.to_string();
    std::string text = "route " + std::to_string(*match.handler);
    for (const auto& [name, raw] : match.parameters) {
        text.append(" ").append(name).append("=").append(raw);
        verify(!leads_astray("/" + std::string(raw)), "a parameter leads astray");
    }
    return text;
}

}  // namespace

// An input consists of lines: patterns, each after a letter for its method, and last the path.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static test::guarded_bytes memory(1 << 14);
    if (size > 10'000) return 0;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    http::internal::route_table<std::size_t> table;
    std::vector<route> routes;
    for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
        if (end == 0) continue;
        const method verb = static_cast<method>(static_cast<unsigned char>(text[0]) % 9);
        const std::string pattern(text.substr(1, end - 1));
        try {
            table.add(verb, pattern, routes.size());
            routes.push_back({routes.size(), verb, pattern});
        } catch (const std::invalid_argument&) {
        }
    }
    verify(table.size() == routes.size(), "a refused route was counted");
    for (const method verb : {method::get, method::head, method::post, method::other}) {
        verify_equal(actual(table, verb, memory.place_view(text)),
                     expected(routes, verb, std::string(text)), "the tree");
    }
    return 0;
}
