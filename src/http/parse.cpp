// Request heads: one state machine, run over all the bytes at once or resumed where the last ones
// ended.
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/parse.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "vector_scan.hpp"

namespace coppice::http {

using namespace internal;

namespace {

// Longer than any registered method. A longer one gets 501 (RFC 9112 section 3).
constexpr std::ptrdiff_t method_bytes_max = 32;

constexpr std::array<std::string_view, method_count> method_names = {
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", ""};

method method_of(std::string_view text) noexcept {
    for (std::size_t i = 0; i + 1 < method_count; ++i) {
        if (text == method_names[i]) return static_cast<method>(i);
    }
    return method::other;
}

// Returns true if a token of `Size` bytes is `name`, whatever its case. `name` has only small
// letters and '-': no other byte of a token becomes one of those when its bit 0x20 is set.
template <std::size_t Size>
bool is_token_of_letters(std::string_view token, const char (&name)[Size]) noexcept {
    unsigned differ = 0;
    for (std::size_t i = 0; i != Size - 1; ++i) {
        differ |= static_cast<unsigned char>((token[i] | 0x20) ^ name[i]);
    }
    return differ == 0;
}

// Returns true if `digits` are a port number: *DIGIT (RFC 3986 section 3.2.3).
bool fits_port(std::string_view digits) noexcept {
    if (digits.size() < 5) return true;
    while (digits.size() > 5 && digits.starts_with('0')) digits.remove_prefix(1);
    return digits.size() < 5 || (digits.size() == 5 && (digits[0] < '6' || digits <= "65535"));
}

// Checks the text between the brackets of an IPv6 address. The scans have excluded NUL.
bool valid_ipv6(std::string_view text) noexcept {
    char terminated[INET6_ADDRSTRLEN];
    if (text.size() >= sizeof terminated) return false;
    std::memcpy(terminated, text.data(), text.size());
    terminated[text.size()] = '\0';
    in6_addr address;
    return ::inet_pton(AF_INET6, terminated, &address) == 1;
}

enum class port_rule : bool { optional, required };

// Checks uri-host [ ":" port ], with a host that is not empty (RFC 9110 sections 4.2.1 and 7.2).
// Refuses user information (section 4.2.4). The bytes after `text`, up to `readable`, may be read,
// so that a vector scan can serve a short text too.
template <class Scan>
[[gnu::always_inline]] inline bool valid_authority(Scan& scan, std::string_view text,
                                                   port_rule rule, const char* readable) noexcept {
    const char* p = text.data();
    const char* const end = p + text.size();
    const auto host = [&](const char* from) { return std::min(scan.host(from, readable), end); };
    if (text.starts_with('[')) {
        const std::size_t bracket = text.find(']');
        if (bracket == text.npos || !valid_ipv6(text.substr(1, bracket - 1))) return false;
        p += bracket + 1;
    } else {
        p = host(p);
        while (end - p > 2 && *p == '%' && is(p[1], hex_byte) && is(p[2], hex_byte)) {
            p = host(p + 3);
        }
        if (p == text.data()) return false;
    }
    if (p == end) return rule == port_rule::optional;
    if (*p++ != ':') return false;
    if (p == end) return rule == port_rule::optional;
    return scan.digits(p, end) == end && fits_port({p, static_cast<std::size_t>(end - p)});
}

}  // namespace

std::string_view to_string(method verb) noexcept {
    return method_names[static_cast<std::size_t>(verb)];
}

std::optional<std::string_view> request_head::find(std::string_view name) const noexcept {
    for (const field& f : fields()) {
        if (equals_ignoring_case(f.name, name)) return f.value;
    }
    return std::nullopt;
}

// Runs the state machine over the bytes. Each phase returns true if it has finished and the next
// one follows. Otherwise it stops with `partial` or an error in result_. A phase that stopped for
// lack of bytes finds in the state, when resumed, where its token starts and how far it was
// scanned.
template <class Scan>
class head_machine {
    using phase = head_state::phase;

public:
    head_machine(Scan& scan, std::string_view bytes, head_state& state, request_head& out,
                 const limits& limit) noexcept
        : scan_(scan),
          base_(bytes.data()),
          end_(base_ + bytes.size()),
          s_(state),
          out_(out),
          limits_(limit) {}

    [[gnu::always_inline]] parse_result run() noexcept {
        const phase from = s_.at;
        const bool in_fields = (from > phase::start || start()) &&    //
                               (from > phase::verb || verb()) &&      //
                               (from > phase::target || target()) &&  //
                               (from > phase::version || version());
        if (in_fields) fields();
        return result_;
    }

private:
    // Skips at most one empty line in front (RFC 9112 section 2.2).
    [[gnu::always_inline]] bool start() noexcept {
        const char* p = base_;
        if (p == end_) return more(phase::start, p, p);
        if (*p == '\r') {
            if (end_ - p < 2) return more(phase::start, p, p);
            if (p[1] != '\n') return fail(400, lone_cr);
            p += 2;
        }
        return enter(p);
    }

    [[gnu::always_inline]] bool verb() noexcept {
        const char* const begin = base_ + s_.token;
        if (end_ - begin >= 4 && std::memcmp(begin, "GET ", 4) == 0) [[likely]] {
            out_.method_text_ = view(begin, begin + 3);
            out_.verb_ = method::get;
            return enter(begin + 4);
        }
        const char* const p =
            scan_.token(base_ + s_.scanned, begin + std::min(end_ - begin, method_bytes_max + 1));
        if (p - begin > method_bytes_max) return fail(501, "the method is too long");
        if (p == end_) return more(phase::verb, begin, p);
        if (p == begin || *p != ' ') return fail(400, "the request line has no valid method");
        out_.method_text_ = view(begin, p);
        out_.verb_ = method_of(out_.method_text_);
        return enter(p + 1);
    }

    // Scans to the space after the target, or to the first byte that makes it too long. A '%'
    // escape that is cut off is scanned again.
    [[gnu::always_inline]] bool target() noexcept {
        const char* const begin = base_ + s_.token;
        const bool too_long = static_cast<std::size_t>(end_ - begin) > limits_.target_bytes_max;
        const char* const limit = too_long ? begin + limits_.target_bytes_max + 1 : end_;
        const char* p = base_ + s_.scanned;
        const bool origin_form = begin != end_ && *begin == '/';
        for (;;) {
            p = origin_form && s_.query == 0 ? scan_.path(p, limit) : scan_.query(p, limit);
            if (p == limit) break;
            if (*p == ' ') [[likely]]
                return target_ends(begin, p);
            if (*p == '?') {
                s_.query = offset(p++);
                continue;
            }
            if (*p != '%') return fail(400, "the target has an invalid byte");
            if (limit - p > 1 && !is(p[1], hex_byte)) return fail(400, bad_escape);
            if (limit - p > 2 && !is(p[2], hex_byte)) return fail(400, bad_escape);
            if (limit - p <= 2) break;
            p += 3;
        }
        return too_long ? fail(414, "the target is too long") : more(phase::target, begin, p);
    }

    // Determines which of the four forms the target has (RFC 9112 section 3.2).
    [[gnu::always_inline]] bool target_ends(const char* begin, const char* end) noexcept {
        const std::string_view text = view(begin, end);
        out_.target_ = text;
        out_.scheme_ = {};
        out_.host_ = {};
        out_.query_ = {};
        if (text.starts_with('/') && out_.verb_ != method::connect) [[likely]] {
            split(text, s_.query == 0 ? text.npos : s_.query - s_.token, out_);
        } else if (!is_other_form(text, end_, out_)) {
            return fail(400, "the target has no form that its method may use");
        }
        return enter(end + 1);
    }

    // Parses a target in any form except origin-form.
    [[gnu::noinline]] static bool is_other_form(std::string_view text, const char* readable,
                                                request_head& out) noexcept {
        Scan scan;
        if (out.verb_ == method::connect) {
            out.host_ = text;
            out.path_ = {};
            return valid_authority(scan, text, port_rule::required, readable);
        }
        if (out.verb_ != method::options || text != "*") return absolute(text, readable, out);
        out.path_ = text;
        return true;
    }

    // Parses scheme "://" authority path-abempty [ "?" query ]. The bytes were scanned as those of
    // a query, so the path has to be checked again.
    static bool absolute(std::string_view text, const char* readable, request_head& out) noexcept {
        const std::size_t colon = text.find(':');
        const std::string_view scheme = text.substr(0, colon);
        if (!equals_ignoring_case(scheme, "http") && !equals_ignoring_case(scheme, "https")) {
            return false;
        }
        if (!text.substr(scheme.size()).starts_with("://")) return false;
        const std::string_view rest = text.substr(scheme.size() + 3);
        const std::size_t path = std::min(rest.find_first_of("/?"), rest.size());
        out.scheme_ = scheme;
        out.host_ = rest.substr(0, path);
        split(rest.substr(path), rest.substr(path).find('?'), out);
        if (out.path_.empty()) {
            // An empty path: RFC 9112 section 3.2.4 for OPTIONS, RFC 9110 section 4.2.3 for other
            // methods.
            out.path_ = out.verb_ == method::options && path == rest.size() ? "*" : "/";
        }
        Scan scan;
        return valid_authority(scan, out.host_, port_rule::optional, readable) &&
               std::ranges::all_of(out.path_, [](char c) { return is(c, path_byte) || c == '%'; });
    }

    [[gnu::always_inline]] static void split(std::string_view text, std::size_t question_mark,
                                             request_head& out) noexcept {
        out.path_ = text.substr(0, question_mark);
        if (question_mark != text.npos) out.query_ = text.substr(question_mark + 1);
    }

    // Parses HTTP-version CRLF (RFC 9112 section 2.3). A minor version above 1 is read as 1.
    [[gnu::always_inline]] bool version() noexcept {
        constexpr std::string_view pattern = "HTTP/1.1\r\n";
        const char* const p = base_ + s_.token;
        const std::size_t size = std::min(static_cast<std::size_t>(end_ - p), pattern.size());
        if (size < pattern.size() || std::memcmp(p, pattern.data(), pattern.size()) != 0) {
            for (std::size_t i = 0; i < size; ++i) {
                const bool digit = i == 5 || i == 7;
                if (digit ? !is(p[i], digit_byte) : p[i] != pattern[i]) {
                    return fail(400, "the request line does not end in a version and CRLF");
                }
                if (i == 7 && p[5] != '1') return fail(505, "the major version is not 1");
            }
            if (size < pattern.size()) return more(phase::version, p, p);
        }
        out_.minor_version_ = p[7] == '0' ? 0 : 1;
        out_.length_.reset();
        out_.expects_continue_ = false;
        out_.chunked_ = false;
        out_.count_ = 0;
        s_.block = offset(p) + pattern.size();
        s_.at = phase::line;
        return enter(p + pattern.size());
    }

    // Parses the field lines, each `name ":" value CRLF`, and the empty line after the last.
    // `token` is where the line or its value begins, `p` how far it is known to be good.
    [[gnu::always_inline]] bool fields() noexcept {
        phase at = s_.at;
        const char* token = base_ + s_.token;
        const char* p = base_ + s_.scanned;
        const char* const limit = block_limit();
        for (;;) {
            if (at == phase::line) {
                if (p == end_) return more(phase::line, p, p);
                if (*p == '\r') return last_line(p);
                if (!line_may_begin(*p)) return false;
                at = phase::name;
            }
            if (at == phase::name) {
                p = scan_.token(p, limit);
                if (p == limit) return cut(phase::name, token, p);
                if (p == token || *p != ':') return fail(400, "a field line has no valid name");
                out_.fields_[out_.count_].name = view(token, p);
                token = ++p;
            }
            p = scan_.value(p, limit);
            if (p == limit) return cut(phase::value, token, p);
            if (*p != '\r') return fail(400, "a field value has a control byte");
            if (p + 1 == limit) return cut(phase::value, token, p);
            if (p[1] != '\n') return fail(400, lone_cr);
            field& f = out_.fields_[out_.count_++];
            f.value = trim(view(token, p));
            if (!known_field(f)) return false;
            token = p += 2;
            at = phase::line;
        }
    }

    [[gnu::always_inline]] bool line_may_begin(char byte) noexcept {
        if (out_.count_ == std::min(limits_.fields_max, request_head::capacity)) {
            return fail(431, "there are too many fields");
        }
        if (byte == ' ' || byte == '\t') return fail(400, "a field line begins with a space");
        return true;
    }

    [[gnu::always_inline]] bool last_line(const char* p) noexcept {
        if (end_ - p < 2) return more(phase::line, p, p);
        if (p[1] != '\n') return fail(400, lone_cr);
        return head_ends(p + 2);
    }

    // Called when the bytes, or the limit for field lines, end inside a line.
    bool cut(phase at, const char* token, const char* scanned) noexcept {
        const bool no_more_bytes = block_limit() == end_;
        return no_more_bytes ? more(at, token, scanned) : fail(431, too_large);
    }

    // Handles fields that decide how the message is read.
    [[gnu::always_inline]] bool known_field(const field& f) noexcept {
        if (f.name.size() == 4) return !is_token_of_letters(f.name, "host") || host(f.value);
        constexpr unsigned others = 1u << 6 | 1u << 10 | 1u << 14 | 1u << 17;
        if (f.name.size() > 17 || (others >> f.name.size() & 1) == 0) return true;
        const complaint c = look_at(f, s_, out_, limits_);
        return c.error == 0 || fail(c.error, c.reason);
    }

    // Handles Host: exactly one, and valid; an authority in the target overrides it (RFC 9112
    // section 3.2).
    [[gnu::always_inline]] bool host(std::string_view text) noexcept {
        if (s_.host_seen) return fail(400, "there is more than one Host");
        if (!valid_authority(scan_, text, port_rule::optional, end_)) {
            return fail(400, "Host is invalid");
        }
        s_.host_seen = true;
        if (out_.host_.empty()) out_.host_ = text;
        return true;
    }

    struct complaint {
        int error = 0;  // 0: none
        const char* reason = "";
    };
    // Handles fields that few requests have, out of line.
    [[gnu::noinline]] static complaint look_at(const field& f, head_state& state, request_head& out,
                                               const limits& limit) noexcept {
        switch (f.name.size()) {
            case 6:
                if (is_token_of_letters(f.name, "expect")) expect(f.value, out);
                return {};
            case 10:
                if (is_token_of_letters(f.name, "connection")) connection(f.value, state);
                return {};
            case 14:
                if (!is_token_of_letters(f.name, "content-length")) return {};
                return length(f.value, state, out, limit);
            default:
                if (!is_token_of_letters(f.name, "transfer-encoding")) return {};
                return coding(f.value, state, out);
        }
    }

    static void expect(std::string_view list, request_head& out) noexcept {
        for_each_member(list, [&](std::string_view member) {
            if (equals_ignoring_case(member, "100-continue")) {
                // Ignored from a 1.0 client (RFC 9110 section 10.1.1).
                out.expects_continue_ = out.minor_version_ != 0;
            }
            return true;
        });
    }

    static void connection(std::string_view list, head_state& state) noexcept {
        for_each_member(list, [&](std::string_view member) {
            if (equals_ignoring_case(member, "close")) state.close_seen = true;
            if (equals_ignoring_case(member, "keep-alive")) state.keep_alive_seen = true;
            return true;
        });
    }

    // Handles Content-Length: only digits, once, and not together with Transfer-Encoding (RFC 9110
    // section 8.6).
    static complaint length(std::string_view digits, const head_state& state, request_head& out,
                            const limits& limit) noexcept {
        if (out.length_) return {400, "there is more than one Content-Length"};
        if (state.coding_seen) return {400, both_lengths};
        std::uint64_t number = 0;
        const char* const end = digits.data() + digits.size();
        const auto [stop, error] = std::from_chars(digits.data(), end, number);
        if (error != std::errc() || stop != end) return {400, "Content-Length is invalid"};
        if (number > limit.body_bytes_max) return {413, "the body is too large"};
        out.length_ = number;
        return {};
    }

    // Handles Transfer-Encoding: chunked, once and last (RFC 9112 sections 6.1, 6.3, and 7). Notes
    // codings that are not implemented: only the head's end shows if they cause a 501 or, for lack
    // of chunked, a 400.
    static complaint coding(std::string_view list, head_state& state, request_head& out) noexcept {
        if (out.minor_version_ == 0) return {400, "Transfer-Encoding in HTTP/1.0"};
        if (out.length_) return {400, both_lengths};
        state.coding_seen = true;
        complaint found;
        for_each_member(list, [&](std::string_view member) {
            const char* const end = member.data() + member.size();
            const std::string_view name = view(member.data(), Scan().token(member.data(), end));
            if (out.chunked_) {
                found = {400, "chunked is not the last transfer coding"};
            } else if (name.empty()) {
                found = {400, "Transfer-Encoding is invalid"};
            } else if (!equals_ignoring_case(name, "chunked")) {
                state.coding_unknown = true;
            } else if (name.size() != member.size()) {
                found = {400, "chunked has no parameters"};
            } else {
                out.chunked_ = true;
            }
            return found.error == 0;
        });
        return found;
    }

    // Checks what only the end of the head can show.
    [[gnu::always_inline]] bool head_ends(const char* p) noexcept {
        if (!s_.host_seen && out_.minor_version_ != 0) return fail(400, "there is no Host");
        if (s_.coding_seen && !out_.chunked_) {
            return fail(400, "the last transfer coding is not chunked");
        }
        if (s_.coding_unknown) return fail(501, "the transfer coding is not implemented");
        out_.keep_alive_ = !s_.close_seen && (out_.minor_version_ != 0 || s_.keep_alive_seen);
        result_ = {parse_status::complete, static_cast<std::size_t>(p - base_), 0, ""};
        return false;
    }

    static constexpr const char* bad_escape = "a '%' is not followed by two hexadecimal digits";
    static constexpr const char* lone_cr = "a CR is not followed by LF";
    static constexpr const char* too_large = "the header fields are too large";
    static constexpr const char* both_lengths =
        "there are both Content-Length and Transfer-Encoding";

    static std::string_view view(const char* begin, const char* end) noexcept {
        return {begin, static_cast<std::size_t>(end - begin)};
    }
    std::size_t offset(const char* p) const noexcept { return static_cast<std::size_t>(p - base_); }
    // Returns the end of the bytes, or the limit for field lines if that comes first.
    const char* block_limit() const noexcept {
        const char* const block = base_ + s_.block;
        return block + std::min(static_cast<std::size_t>(end_ - block), limits_.header_bytes_max);
    }

    bool enter(const char* token) noexcept {
        s_.token = s_.scanned = offset(token);
        return true;
    }
    [[gnu::always_inline]] bool more(phase at, const char* token, const char* scanned) noexcept {
        s_.at = at;
        s_.token = offset(token);
        s_.scanned = offset(scanned);
        result_ = incomplete();
        return false;
    }
    [[gnu::always_inline]] bool fail(int error, const char* reason) noexcept {
        result_ = refusal(error, reason);
        return false;
    }
    // Cold, so that the code that leads to them lies apart from the code that most heads run.
    [[gnu::cold, gnu::noinline]] static parse_result incomplete() noexcept { return {}; }
    [[gnu::cold, gnu::noinline]] static parse_result refusal(int error,
                                                             const char* reason) noexcept {
        return {parse_status::error, 0, error, reason};
    }

    Scan& scan_;
    const char* base_;
    const char* end_;
    head_state& s_;
    request_head& out_;
    const limits& limits_;
    parse_result result_;
};

namespace {

// The whole machine must be one function for each instruction set: a scan with vector instructions
// can be inlined only into a function that has them too.
parse_result run_scalar(std::string_view bytes, head_state& state, request_head& out,
                        const limits& limit) noexcept {
    scalar_scan scan;
    return head_machine(scan, bytes, state, out, limit).run();
}
#if defined(__x86_64__)
[[gnu::target("sse4.2")]] parse_result run_sse(std::string_view bytes, head_state& state,
                                               request_head& out, const limits& limit) noexcept {
    sse_scan scan;
    return head_machine(scan, bytes, state, out, limit).run();
}
[[gnu::target("avx2")]] parse_result run_avx2(std::string_view bytes, head_state& state,
                                              request_head& out, const limits& limit) noexcept {
    avx2_scan scan;
    return head_machine(scan, bytes, state, out, limit).run();
}
parse_result run_avx512(std::string_view bytes, head_state& state, request_head& out,
                        const limits& limit) noexcept {
    avx512_scan scan;
    return head_machine(scan, bytes, state, out, limit).run();
}
#endif

using machine = parse_result (*)(std::string_view, head_state&, request_head&,
                                 const limits&) noexcept;

// If each token is scanned by itself, vectors pay only for long tokens: in a short head, most of a
// vector holds the next token (bench_parse).
constexpr std::size_t short_head_bytes = 256;

machine machine_for(std::string_view bytes) noexcept {
    static const machine best = head_machines().back().run;
#if defined(__x86_64__)
    if (best == run_avx512) return best;
#endif
    return bytes.size() < short_head_bytes ? run_scalar : best;
}

}  // namespace

namespace internal {

std::span<const named_machine> head_machines() noexcept {
    static const std::span<const named_machine> present = [] {
        static constexpr named_machine all[] = {
            {"scalar", run_scalar},
#if defined(__x86_64__)
            {"sse4.2", run_sse},
            {"avx2", run_avx2},
            {"avx512", run_avx512},
#endif
        };
        static std::array<named_machine, std::size(all)> usable;
        std::size_t count = 0;
        usable[count++] = all[0];
#if defined(__x86_64__)
        if (__builtin_cpu_supports("sse4.2")) usable[count++] = all[1];
        if (__builtin_cpu_supports("avx2")) usable[count++] = all[2];
        if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi")) {
            usable[count++] = all[3];
        }
#endif
        return std::span<const named_machine>(usable).first(count);
    }();
    return present;
}

}  // namespace internal

parse_result parse_head(std::string_view bytes, request_head& out, const limits& limit) noexcept {
    head_state state;
    return machine_for(bytes)(bytes, state, out, limit);
}

parse_result head_parser::parse(std::string_view bytes) noexcept {
    if (base_ != bytes.data() || bytes.size() < state_.scanned) reset();
    base_ = bytes.data();
    const parse_result result = machine_for(bytes)(bytes, state_, head_, limits_);
    if (result.status != parse_status::partial) reset();
    return result;
}

}  // namespace coppice::http
