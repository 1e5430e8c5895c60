// Reads a trace in the trace event format strictly, and checks what must hold for every trace.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice::test {

// As much of JSON as a trace needs: numbers and literals are kept as text.
struct json_value {
    std::string name;  // of a member of an object
    std::string text;
    std::vector<json_value> members;  // of an object or array
    const json_value* find(std::string_view wanted) const {
        for (const json_value& each : members) {
            if (each.name == wanted) return &each;
        }
        return nullptr;
    }
};

class json_reader {
public:
    explicit json_reader(std::string_view text) : text_(text) {}
    json_value whole() {
        json_value v = value();
        skip_space();
        if (at_ != text_.size()) fail();
        return v;
    }

private:
    [[noreturn]] void fail() const {
        throw std::runtime_error("no JSON from byte " + std::to_string(at_));
    }
    void skip_space() {
        while (at_ != text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    }
    char peek() {
        skip_space();
        return at_ == text_.size() ? '\0' : text_[at_];
    }
    bool take(char c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    void need(char c) {
        if (!take(c)) fail();
    }
    json_value value() {
        json_value v;
        if (peek() == '"') {
            v.text = string();
        } else if (take('{')) {
            while (!take('}')) {
                if (!v.members.empty()) need(',');
                std::string name = string();
                need(':');
                v.members.push_back(value());
                v.members.back().name = std::move(name);
            }
        } else if (take('[')) {
            while (!take(']')) {
                if (!v.members.empty()) need(',');
                v.members.push_back(value());
            }
        } else {
            v.text = number();
        }
        return v;
    }
    std::string number() {
        double number = 0;
        const auto [end, error] =
            std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
        const auto length = static_cast<std::size_t>(end - text_.data()) - at_;
        if (error != std::errc() || std::isalpha(static_cast<unsigned char>(text_[at_]))) fail();
        std::string all(text_.substr(at_, length));
        at_ += length;
        return all;
    }
    std::string string() {
        need('"');
        std::string all;
        for (; at_ != text_.size() && text_[at_] != '"'; ++at_) {
            char c = text_[at_];
            if (static_cast<unsigned char>(c) < 0x20) fail();
            if (c == '\\') c = escaped();
            all += c;
        }
        need('"');
        return all;
    }
    char escaped() {
        if (++at_ == text_.size()) fail();
        if (text_[at_] == '"' || text_[at_] == '\\') return text_[at_];
        unsigned code = 0;
        if (text_[at_] != 'u' || at_ + 5 > text_.size()) fail();
        const char* const digits = text_.data() + at_ + 1;
        if (std::from_chars(digits, digits + 4, code, 16).ptr != digits + 4 || code > 0x7f) fail();
        at_ += 4;
        return static_cast<char>(code);
    }
    std::string_view text_;
    std::size_t at_ = 0;
};

struct trace_file {
    std::string error;                          // "" if all that must hold does
    std::map<std::string, std::string> tracks;  // their names, by number
    std::map<std::pair<char, std::string>, std::size_t> counts;
    std::uint64_t dropped = 0;
    double last_us = 0;
    std::size_t count(char phase, const std::string& name) const {
        const auto found = counts.find({phase, name});
        return found == counts.end() ? 0 : found->second;
    }
};

// Checks that it is valid JSON, that begins and ends balance, and that time never goes back.
inline trace_file read_trace(std::string_view text) {
    trace_file file;
    struct state {
        int open = 0;
        double last = 0;
    };
    std::map<std::string, state> states;
    try {
        const json_value all = json_reader(text).whole();
        const auto need = [](const json_value& v, const char* name) -> const json_value& {
            const json_value* const found = v.find(name);
            if (found == nullptr) throw std::runtime_error(std::string("no ") + name);
            return *found;
        };
        for (const json_value& e : need(all, "traceEvents").members) {
            const std::string track = need(e, "tid").text;
            const char phase = need(e, "ph").text.at(0);
            if (phase == 'M') {
                file.tracks[track] = need(need(e, "args"), "name").text;
                continue;
            }
            const json_value* const name = e.find("name");
            ++file.counts[{phase, name == nullptr ? "" : name->text}];
            state& s = states[track];
            if (phase == 'B') ++s.open;
            if (phase == 'E' && s.open-- == 0) {
                throw std::runtime_error("track " + track + ": an end without its begin");
            }
            const double time = std::stod(need(e, "ts").text);
            if (time < s.last) throw std::runtime_error("track " + track + ": time goes back");
            s.last = time;
            file.last_us = std::max(file.last_us, time);
        }
        for (const auto& [track, s] : states) {
            if (s.open != 0) {
                throw std::runtime_error("track " + track + ": a begin without its end");
            }
        }
        file.dropped = std::stoull(need(need(all, "otherData"), "dropped_events").text);
    } catch (const std::exception& e) {
        file.error = e.what();
    }
    return file;
}

}  // namespace coppice::test
