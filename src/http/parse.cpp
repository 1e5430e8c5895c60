// Request heads: one machine, run over all the bytes at once or resumed where the last ones ended.
#include <coppice/http/parse.hpp>
#include <coppice/http/scan.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "vector_scan.hpp"

namespace coppice::http {

namespace {

// Longer than any registered method; beyond it, 501 (RFC 9112 section 3).
constexpr std::ptrdiff_t method_bytes_max = 32;

constexpr std::array<std::string_view, method_count> method_names = {
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", ""};

method method_of(std::string_view text) noexcept {
    for (std::size_t i = 0; i + 1 < method_count; ++i) {
        if (text == method_names[i]) return static_cast<method>(i);
    }
    return method::other;
}

// Whether a token of that size is `name`, which is of small letters and '-', whatever its case: no
// other byte of a token becomes one of those when its bit 0x20 is set.
template <std::size_t Size>
bool is_token_of_letters(std::string_view token, const char (&name)[Size]) noexcept {
    unsigned differ = 0;
    for (std::size_t i = 0; i != Size - 1; ++i) {
        differ |= static_cast<unsigned char>((token[i] | 0x20) ^ name[i]);
    }
    return differ == 0;
}

// *DIGIT, as a port number (RFC 3986 section 3.2.3).
bool valid_port(std::string_view digits) noexcept {
    if (digits.size() > 5) {
        while (digits.starts_with('0')) digits.remove_prefix(1);
        if (digits.size() > 5) return false;
    }
    for (const char c : digits) {
        if (c < '0' || c > '9') return false;
    }
    return digits.size() < 5 || digits[0] < '6' || digits <= "65535";
}

// The text between the brackets of an IPv6 address; it has no NUL, the scans have seen to that.
bool valid_ipv6(std::string_view text) noexcept {
    char terminated[INET6_ADDRSTRLEN];
    if (text.size() >= sizeof terminated) return false;
    std::memcpy(terminated, text.data(), text.size());
    terminated[text.size()] = '\0';
    in6_addr address;
    return ::inet_pton(AF_INET6, terminated, &address) == 1;
}

enum class port_rule : bool { optional, required };

// uri-host [ ":" port ], the host not empty (RFC 9110 sections 4.2.1 and 7.2). User information is
// refused (section 4.2.4). The bytes behind `text`, up to `readable`, may be looked at, so that the
// scan of a short text is one of vectors too.
template <class Scan>
[[gnu::always_inline]] inline bool valid_authority(std::string_view text, port_rule rule,
                                                   const char* readable) noexcept {
    const char* p = text.data();
    const char* const end = p + text.size();
    const auto host = [&](const char* from) { return std::min(Scan::host(from, readable), end); };
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
    return valid_port({p, static_cast<std::size_t>(end - p)});
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

// Runs head_state over the bytes. Each phase either finishes, and true leads to the next, or stops
// with `partial` or an error in result_. A phase that stopped for want of bytes finds, when
// resumed, its token's start and how far it has been scanned in the state.
template <class Scan>
class head_machine {
public:
    head_machine(std::string_view bytes, head_state& state, request_head& out,
                 const limits& limit) noexcept
        : base_(bytes.data()), end_(base_ + bytes.size()), s_(state), out_(out), limits_(limit) {}

    [[gnu::always_inline]] parse_result run() noexcept {
        switch (s_.at) {
            case phase::start:
                if (!start()) break;
                [[fallthrough]];
            case phase::verb:
                if (!verb()) break;
                [[fallthrough]];
            case phase::target:
                if (!target()) break;
                [[fallthrough]];
            case phase::version:
                if (!version()) break;
                [[fallthrough]];
            case phase::line:
            case phase::name:
            case phase::value:
                fields();
        }
        return result_;
    }

private:
    using phase = head_state::phase;

    // At most one empty line in front (RFC 9112 section 2.2).
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
        if (end_ - begin >= 4 && std::memcmp(begin, "GET ", 4) == 0) {  // as most are
            out_.method_text_ = view(begin, begin + 3);
            out_.verb_ = method::get;
            return enter(begin + 4);
        }
        const char* const p =
            Scan::token(base_ + s_.scanned, begin + std::min(end_ - begin, method_bytes_max + 1));
        if (p - begin > method_bytes_max) return fail(501, "the method is too long");
        if (p == end_) return more(phase::verb, begin, p);
        if (p == begin || *p != ' ') return fail(400, "the request line has no valid method");
        out_.method_text_ = view(begin, p);
        out_.verb_ = method_of(out_.method_text_);
        return enter(p + 1);
    }

    // Scans to the space behind the target, or to the first byte that makes it too long. A '%' that
    // is cut off is scanned again.
    [[gnu::always_inline]] bool target() noexcept {
        const char* const begin = base_ + s_.token;
        const bool too_long = static_cast<std::size_t>(end_ - begin) > limits_.target_bytes_max;
        const char* const limit = too_long ? begin + limits_.target_bytes_max + 1 : end_;
        const char* p = base_ + s_.scanned;
        const bool origin_form = begin != end_ && *begin == '/';
        for (;;) {
            p = origin_form && s_.query == 0 ? Scan::path(p, limit) : Scan::query(p, limit);
            if (p == limit) break;
            if (*p == ' ') return target_ends(begin, p);
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

    // Which of the four forms it is (RFC 9112 section 3.2).
    [[gnu::always_inline]] bool target_ends(const char* begin, const char* end) noexcept {
        const std::string_view text = view(begin, end);
        out_.target_ = text;
        out_.scheme_ = {};
        out_.host_ = {};
        out_.query_ = {};
        bool valid = false;
        if (out_.verb_ == method::connect) {
            valid = valid_authority<Scan>(text, port_rule::required, end_);
            out_.host_ = text;
            out_.path_ = {};
        } else if (text.starts_with('/')) {
            valid = true;
            split(text, s_.query == 0 ? text.npos : s_.query - s_.token);
        } else if (out_.verb_ == method::options && text == "*") {
            valid = true;
            out_.path_ = text;
        } else {
            valid = absolute(text);
        }
        if (!valid) return fail(400, "the target is in no form that its method may use");
        return enter(end + 1);
    }

    // scheme "://" authority path-abempty [ "?" query ]; the bytes are those of a query, so the
    // path has to be looked at again.
    bool absolute(std::string_view text) noexcept {
        const std::size_t colon = text.find(':');
        const std::string_view scheme = text.substr(0, colon);
        if (!equals_ignoring_case(scheme, "http") && !equals_ignoring_case(scheme, "https")) {
            return false;
        }
        if (!text.substr(scheme.size()).starts_with("://")) return false;
        const std::string_view rest = text.substr(scheme.size() + 3);
        const std::size_t path = std::min(rest.find_first_of("/?"), rest.size());
        out_.scheme_ = scheme;
        out_.host_ = rest.substr(0, path);
        split(rest.substr(path), rest.substr(path).find('?'));
        if (out_.path_.empty()) {
            // RFC 9112 section 3.2.4 for OPTIONS, RFC 9110 section 4.2.3 for the others.
            out_.path_ = out_.verb_ == method::options && path == rest.size() ? "*" : "/";
        }
        return valid_authority<Scan>(out_.host_, port_rule::optional, end_) &&
               std::ranges::all_of(out_.path_, [](char c) { return is(c, path_byte) || c == '%'; });
    }

    [[gnu::always_inline]] void split(std::string_view text, std::size_t question_mark) noexcept {
        out_.path_ = text.substr(0, question_mark);
        if (question_mark != text.npos) out_.query_ = text.substr(question_mark + 1);
    }

    // HTTP-version CRLF (RFC 9112 section 2.3); a minor version beyond 1 is read as 1.
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

    // The field lines, each `name ":" value CRLF`, and the empty line behind the last.
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
                p = Scan::token(p, limit);
                if (p == limit) return cut(phase::name, token, p);
                if (p == token || *p != ':') return fail(400, "a field line has no valid name");
                out_.fields_[out_.count_].name = view(token, p);
                token = ++p;
            }
            p = Scan::value(p, limit);
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

    // The bytes, or what field lines may take, end inside a line.
    bool cut(phase at, const char* token, const char* scanned) noexcept {
        const bool no_more_bytes = block_limit() == end_;
        return no_more_bytes ? more(at, token, scanned) : fail(431, too_large);
    }

    // Fields that decide how the message is read.
    [[gnu::always_inline]] bool known_field(const field& f) noexcept {
        switch (f.name.size()) {
            case 4:
                return !is_token_of_letters(f.name, "host") || host(f.value);
            case 6:
                return !is_token_of_letters(f.name, "expect") || expect(f.value);
            case 10:
                return !is_token_of_letters(f.name, "connection") || connection(f.value);
            case 14:
                return !is_token_of_letters(f.name, "content-length") || length(f.value);
            case 17:
                return !is_token_of_letters(f.name, "transfer-encoding") || coding(f.value);
            default:
                return true;
        }
    }

    // RFC 9112 section 3.2: once, and valid; an authority in the target goes before it.
    [[gnu::always_inline]] bool host(std::string_view text) noexcept {
        if (s_.host_seen) return fail(400, "there is more than one Host");
        if (!valid_authority<Scan>(text, port_rule::optional, end_)) {
            return fail(400, "Host is invalid");
        }
        s_.host_seen = true;
        if (out_.host_.empty()) out_.host_ = text;
        return true;
    }

    bool expect(std::string_view list) noexcept {
        return for_each_member(list, [&](std::string_view member) {
            if (equals_ignoring_case(member, "100-continue")) {
                // RFC 9110 section 10.1.1: not from a 1.0 client.
                out_.expects_continue_ = out_.minor_version_ != 0;
            }
            return true;
        });
    }

    bool connection(std::string_view list) noexcept {
        return for_each_member(list, [&](std::string_view member) {
            if (equals_ignoring_case(member, "close")) s_.close_seen = true;
            if (equals_ignoring_case(member, "keep-alive")) s_.keep_alive_seen = true;
            return true;
        });
    }

    // RFC 9110 section 8.6: digits alone, once, and not beside a Transfer-Encoding.
    bool length(std::string_view digits) noexcept {
        if (out_.length_) return fail(400, "there is more than one Content-Length");
        if (s_.coding_seen) return fail(400, both_lengths);
        std::uint64_t number = 0;
        const char* const end = digits.data() + digits.size();
        const auto [stop, error] = std::from_chars(digits.data(), end, number);
        if (error != std::errc() || stop != end) return fail(400, "Content-Length is invalid");
        if (number > limits_.body_bytes_max) return fail(413, "the body is too large");
        out_.length_ = number;
        return true;
    }

    // RFC 9112 sections 6.1, 6.3 and 7: chunked, once and last. Codings that are not implemented
    // are noted: whether they make a 501 or, for want of chunked, a 400 is known at the head's end.
    bool coding(std::string_view list) noexcept {
        if (out_.minor_version_ == 0) return fail(400, "Transfer-Encoding in HTTP/1.0");
        if (out_.length_) return fail(400, both_lengths);
        s_.coding_seen = true;
        return for_each_member(list, [&](std::string_view member) {
            if (out_.chunked_) return fail(400, "chunked is not the last transfer coding");
            const std::size_t name = offset_of_non_token(member);
            if (name == 0) return fail(400, "Transfer-Encoding is invalid");
            if (equals_ignoring_case(member.substr(0, name), "chunked")) {
                if (name != member.size()) return fail(400, "chunked has no parameters");
                out_.chunked_ = true;
            } else {
                s_.coding_unknown = true;
            }
            return true;
        });
    }

    // What only the end can tell.
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
    static std::size_t offset_of_non_token(std::string_view text) noexcept {
        const char* const p = Scan::token(text.data(), text.data() + text.size());
        return static_cast<std::size_t>(p - text.data());
    }
    std::size_t offset(const char* p) const noexcept { return static_cast<std::size_t>(p - base_); }
    // The end of the bytes, or of what field lines may take if that comes first.
    const char* block_limit() const noexcept {
        const char* const block = base_ + s_.block;
        return block + std::min(static_cast<std::size_t>(end_ - block), limits_.header_bytes_max);
    }

    bool enter(const char* token) noexcept {
        s_.token = s_.scanned = offset(token);
        return true;
    }
    bool more(phase at, const char* token, const char* scanned) noexcept {
        s_.at = at;
        s_.token = offset(token);
        s_.scanned = offset(scanned);
        result_ = {};
        return false;
    }
    bool fail(int error, const char* reason) noexcept {
        result_ = {parse_status::error, 0, error, reason};
        return false;
    }

    const char* base_;
    const char* end_;
    head_state& s_;
    request_head& out_;
    const limits& limits_;
    parse_result result_;
};

namespace {

// The whole machine is to be one function for each instruction set: a scan with vector instructions
// can be part only of a function that has them too.
parse_result run_scalar(std::string_view bytes, head_state& state, request_head& out,
                        const limits& limit) noexcept {
    return head_machine<scalar_scan>(bytes, state, out, limit).run();
}
#if defined(__x86_64__)
[[gnu::target("sse4.2")]] parse_result run_sse(std::string_view bytes, head_state& state,
                                               request_head& out, const limits& limit) noexcept {
    return head_machine<sse_scan>(bytes, state, out, limit).run();
}
[[gnu::target("avx2")]] parse_result run_avx2(std::string_view bytes, head_state& state,
                                              request_head& out, const limits& limit) noexcept {
    return head_machine<avx2_scan>(bytes, state, out, limit).run();
}
[[gnu::target("avx512bw")]] parse_result run_avx512(std::string_view bytes, head_state& state,
                                                    request_head& out,
                                                    const limits& limit) noexcept {
    return head_machine<avx512_scan>(bytes, state, out, limit).run();
}
#endif

using machine = parse_result (*)(std::string_view, head_state&, request_head&,
                                 const limits&) noexcept;

// Vectors pay where there is something to scan: in a short head most of what a vector holds belongs
// to the next token (bench_parse).
constexpr std::size_t short_head_bytes = 256;

machine machine_for(std::string_view bytes) noexcept {
    static const machine best = head_machines().back().run;
    return bytes.size() < short_head_bytes ? run_scalar : best;
}

}  // namespace

std::span<const named_machine> head_machines() noexcept {
    static const std::span<const named_machine> present = [] {
        // AVX-512 goes before AVX2: on heads as browsers send them its masks cost more than its
        // width gains (bench_parse), and it takes the last, shorter vector no faster.
        static constexpr named_machine all[] = {
            {"scalar", run_scalar},
#if defined(__x86_64__)
            {"sse4.2", run_sse},
            {"avx512", run_avx512},
            {"avx2", run_avx2},
#endif
        };
        static std::array<named_machine, std::size(all)> usable;
        std::size_t count = 0;
        usable[count++] = all[0];
#if defined(__x86_64__)
        if (__builtin_cpu_supports("sse4.2")) usable[count++] = all[1];
        if (__builtin_cpu_supports("avx512bw")) usable[count++] = all[2];
        if (__builtin_cpu_supports("avx2")) usable[count++] = all[3];
#endif
        return std::span<const named_machine>(usable).first(count);
    }();
    return present;
}

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
