// The tree of segments behind route_table.
#include <coppice/http/internal/route_table.hpp>
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/uri.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace coppice::http::internal {

namespace {

// A longer segment of a path matches no literal, so a segment can be decoded on the stack.
constexpr std::size_t literal_bytes_max = 255;

enum class kind : unsigned char { literal, integer, plain, rest };

[[noreturn]] void malformed(std::string_view pattern, const char* why) {
    throw std::invalid_argument("route \"" + std::string(pattern) + "\": " + why);
}

bool is_identifier(std::string_view text) noexcept {
    const auto in_name = [](char c) {
        return is(c, digit_byte) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '_';
    };
    return !text.empty() && !is(text[0], digit_byte) && std::ranges::all_of(text, in_name);
}

// Returns true if a path can be given to handlers as it is: well-formed escapes, no NUL, no segment
// "." or "..", with escaped slashes treated as slashes.
bool safe(std::string_view path) noexcept {
    if (path.find('%') == path.npos && path.find('\0') == path.npos &&
        path.find("/.") == path.npos) {
        return true;
    }
    std::size_t length = 0;  // length of the segment so far
    bool dots = true;        // the segment has only dots so far
    const auto dot_segment = [&] { return dots && (length == 1 || length == 2); };
    const bool decoded = percent_decode_each(path, plus_sign::literal, [&](char byte) {
        if (byte == '\0') return false;
        if (byte == '/') {
            if (dot_segment()) return false;
            length = 0;
            dots = true;
        } else {
            ++length;
            dots = dots && byte == '.';
        }
        return true;
    });
    return decoded && !dot_segment();
}

}  // namespace

struct route_tree::segment {
    kind what;
    std::string_view text;  // the literal, or the parameter's name
};

std::string method_set::to_string() const {
    std::string text;
    for (std::size_t i = 0; i < method_count; ++i) {
        const method verb = static_cast<method>(i);
        if (!contains(verb) || verb == method::other) continue;
        if (!text.empty()) text += ", ";
        text += http::to_string(verb);
    }
    return text;
}

// Parses the segment at the front of `rest`, which does not include the slash before it.
route_tree::segment route_tree::parse_segment(std::string_view pattern, std::string_view text,
                                              bool last) {
    if (!text.starts_with('{')) {
        if (text.empty() && !last) malformed(pattern, "an empty segment that is not the last");
        if (text == "." || text == "..") malformed(pattern, "a dot segment");
        if (text.size() > literal_bytes_max) malformed(pattern, "a literal that is too long");
        for (const char c : text) {
            if (!is(c, value_byte) ||
                std::string_view("\t{}%?#").find(c) != std::string_view::npos) {
                malformed(pattern, "a byte that no literal may have");
            }
        }
        return {kind::literal, text};
    }
    if (!text.ends_with('}')) malformed(pattern, "a parameter is not a whole segment");
    std::string_view name = text.substr(1, text.size() - 2);
    kind what = kind::plain;
    if (name.ends_with("...")) {
        if (!last) malformed(pattern, "{name...} is not the last segment");
        what = kind::rest;
        name.remove_suffix(3);
    } else if (const std::size_t colon = name.find(':'); colon != name.npos) {
        if (name.substr(colon + 1) != "int") malformed(pattern, "the type is not \"int\"");
        what = kind::integer;
        name = name.substr(0, colon);
    }
    if (!is_identifier(name)) malformed(pattern, "a parameter's name is not an identifier");
    return {what, name};
}

void route_tree::insert(std::size_t slot, std::string_view pattern) {
    if (!pattern.starts_with('/')) malformed(pattern, "it does not start with '/'");
    std::vector<segment> segments;
    std::vector<std::string> names;
    for (std::size_t slash = 0; slash != pattern.npos;) {
        const std::size_t next = pattern.find('/', slash + 1);
        const std::string_view text = pattern.substr(slash + 1, next - slash - 1);
        segments.push_back(parse_segment(pattern, text, next == pattern.npos));
        slash = next;
        const segment& s = segments.back();
        if (s.what == kind::literal) continue;
        if (std::ranges::find(names, s.text) != names.end()) {
            malformed(pattern, "two parameters of one name");
        }
        names.emplace_back(s.text);
    }
    if (names.size() > path_parameters::capacity) malformed(pattern, "too many parameters");

    std::uint32_t at = 0;
    for (const segment& s : segments) {
        if (s.what != kind::rest) at = descend(at, s);
    }
    node& last = nodes_[at];
    std::uint32_t& end = segments.back().what == kind::rest ? last.rest : last.end;
    if (end == none) {
        end = static_cast<std::uint32_t>(leaves_.size());
        leaves_.emplace_back();
    }
    std::uint32_t& route = leaves_[end].routes[slot];
    if (route != none) malformed(pattern, "the route exists");
    if (names.empty()) insert_whole(pattern, end);
    names_.push_back(std::move(names));
    route = static_cast<std::uint32_t>(names_.size() - 1);
}

// Hashes a path's length and its two ends, where routes differ.
std::size_t route_tree::hash_of(std::string_view path) noexcept {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    if (path.size() >= sizeof first) {
        std::memcpy(&first, path.data(), sizeof first);
        std::memcpy(&last, path.data() + path.size() - sizeof last, sizeof last);
    } else {
        for (const char c : path) first = first << 8 | static_cast<unsigned char>(c);
    }
    const std::uint64_t mixed = (first ^ std::rotl(last, 29) ^ path.size()) * 0x9e3779b97f4a7c15;
    return static_cast<std::size_t>(mixed >> 32);
}

// Returns the place where that path is, or would be.
std::size_t route_tree::place_of(std::string_view path) const noexcept {
    const std::size_t mask = wholes_.size() - 1;
    std::size_t at = hash_of(path) & mask;
    while (wholes_[at].end != none && wholes_[at].path != path) at = (at + 1) & mask;
    return at;
}

void route_tree::insert_whole(std::string_view path, std::uint32_t end) {
    if (wholes_[place_of(path)].end != none) return;  // inserted for another method
    if (2 * (whole_count_ + 1) > wholes_.size()) {
        std::vector<whole> smaller(2 * wholes_.size());
        smaller.swap(wholes_);
        for (whole& w : smaller) {
            if (w.end != none) wholes_[place_of(w.path)] = std::move(w);
        }
    }
    wholes_[place_of(path)] = {std::string(path), end};
    ++whole_count_;
}

// Returns the node after a segment, and makes it if there is none.
std::uint32_t route_tree::descend(std::uint32_t from, const segment& s) {
    const std::uint32_t fresh = static_cast<std::uint32_t>(nodes_.size());
    nodes_.emplace_back();
    node& n = nodes_[from];
    std::uint32_t* child = s.what == kind::integer ? &n.integer : &n.plain;
    if (s.what == kind::literal) {
        auto place = std::ranges::lower_bound(n.literals, s.text, {}, text_of);
        if (place == n.literals.end() || place->first != s.text) {
            place = n.literals.insert(place, {std::string(s.text), none});
        }
        child = &place->second;
    }
    if (*child == none) {
        *child = fresh;
    } else {
        nodes_.pop_back();
    }
    return *child;
}

// One walk through the tree. The recursion is as deep as the longest pattern.
struct route_tree::search {
    const route_tree& tree;
    method verb;
    match_result& result;

    // Matches from the node `at` on; `path` is what follows the slash after that node.
    bool walk(const node& at, std::string_view path) noexcept {
        const std::size_t slash = path.find('/');
        const std::string_view text = path.substr(0, slash);
        const auto follow = [&](std::uint32_t next) {
            if (next == none) return false;
            const node& n = tree.nodes_[next];
            return slash == path.npos ? take(n.end) : walk(n, path.substr(slash + 1));
        };
        const auto follow_with = [&](std::uint32_t next) {
            result.parameters.push_back({{}, text});
            if (follow(next)) return true;
            result.parameters.pop_back();
            return false;
        };
        if (follow(literal(at, text))) return true;
        if (at.integer != none && parse_integer<std::int64_t>(text) && follow_with(at.integer)) {
            return true;
        }
        if (at.plain != none && !text.empty() && follow_with(at.plain)) return true;
        if (at.rest == none) return false;
        result.parameters.push_back({{}, path});
        if (take(at.rest)) return true;
        result.parameters.pop_back();
        return false;
    }

    static std::uint32_t literal(const node& at, std::string_view text) noexcept {
        char decoded[literal_bytes_max];
        if (text.find('%') != text.npos) {
            std::size_t size = 0;
            const bool fits = percent_decode_each(text, plus_sign::literal, [&](char byte) {
                if (size == literal_bytes_max) return false;
                decoded[size++] = byte;
                return true;
            });
            if (!fits) return none;
            text = {decoded, size};
        }
        const auto place = std::ranges::lower_bound(at.literals, text, {}, text_of);
        return place != at.literals.end() && place->first == text ? place->second : none;
    }

    // Called when the path has ended at a leaf: takes the leaf's route if it has one for the
    // method.
    bool take(std::uint32_t index) noexcept {
        if (index == none) return false;
        const auto& routes = tree.leaves_[index].routes;
        std::uint32_t route = routes[static_cast<std::size_t>(verb)];
        if (route == none && verb == method::head) {
            route = routes[static_cast<std::size_t>(method::get)];
        }
        if (route == none) route = routes[any_slot];
        if (route != none) {
            result.route = route;
            return true;
        }
        for (std::size_t i = 0; i < method_count; ++i) {
            if (routes[i] != none) result.allowed.insert(static_cast<method>(i));
        }
        return false;
    }
};

route_tree::match_result route_tree::match(method verb, std::string_view path) const noexcept {
    match_result result;
    // Literals win in the tree too, and a path that equals one is safe.
    if (search{*this, verb, result}.take(wholes_[place_of(path)].end)) {
        result.status = match_status::found;
        return result;
    }
    result.allowed = {};
    if (!path.starts_with('/')) return result;
    if (!safe(path)) {
        result.status = match_status::bad_path;
    } else if (search{*this, verb, result}.walk(nodes_[0], path.substr(1))) {
        result.status = match_status::found;
        result.allowed = {};
        const std::vector<std::string>& names = names_[result.route];
        for (std::size_t i = 0; i < names.size(); ++i) result.parameters[i].name = names[i];
    } else if (!result.allowed.empty()) {
        result.status = match_status::method_not_allowed;
        if (result.allowed.contains(method::get)) result.allowed.insert(method::head);
    }
    return result;
}

}  // namespace coppice::http::internal
