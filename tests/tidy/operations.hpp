// The law of stopping: every public asynchronous function is in the test that stops all of them.
#pragma once
// A function of the library's headers is asynchronous if it takes a completion token (use_await_t
// by default), returns a task or a sender, or schedules for a time. So is an algorithm of exec,
// which is an object `inline constexpr then_t then{}`. The law ignores private members and the
// parts of tokens. The test is tests/compose/every_operation*: where it stops or excuses a
// function, a text begins with its name, for example "stream::receive". A name whose function is
// gone must go too.

#include "names.hpp"

namespace tidy {

// Objects of exec that are not algorithms.
inline constexpr const char* not_operations[] = {
    "as_awaitable", "connect", "forwarding_query", "record_outstanding", "now",
    "runs_here",    "start"};
// Functions that are parts of operations.
inline constexpr const char* parts_of_operations[] = {"affine", "get_return_object", "initiate",
                                                      "perform", "wrap"};

template <std::size_t N>
bool is_one_of(std::string_view word, const char* const (&words)[N]) {
    return std::any_of(std::begin(words), std::end(words),
                       [&](std::string_view each) { return each == word; });
}

struct named_operation {
    std::string name;
    std::size_t line;
};

// Finds the asynchronous functions of one header. `senders` has the names of classes that are
// senders, to which this adds those of the header.
class operations_of {
public:
    operations_of(const source_file& file, std::set<std::string>& senders)
        : file_(file), senders_(senders) {
        std::size_t begin = 0;  // of the current declaration
        for (std::size_t i = 0; i < file.tokens.size(); ++i) {
            const std::string_view word = file.at(i);
            if (word == "template") {
                i = past_angles(file, i + 1) - 1;
            } else if (word == ";") {
                object(begin, i);
                begin = i + 1;
            } else if (word == "}") {
                if (!scopes_.empty()) scopes_.pop_back();
                begin = i + 1;
            } else if (word == ":" && is_access(file.at(i - 1)) && i == begin + 1) {
                if (!scopes_.empty()) scopes_.back().is_public = file.at(i - 1) == "public";
                begin = i + 1;
            } else if (word == "sender_concept" && file.at(i - 1) == "using") {
                if (!scopes_.empty()) senders_.insert(scopes_.back().name);
            } else if (word == "(") {
                const std::size_t close = closing(file.tokens, i);
                function(begin, i);
                i = close;
            } else if (word == "{") {
                if (!opens_scope(begin, i)) {
                    object(begin, i);
                    i = closing(file.tokens, i);
                    if (file.at(i + 1) == ";") ++i;
                }
                begin = i + 1;
            }
        }
    }
    std::vector<named_operation> all;

private:
    struct scope {
        std::string name;  // "" for a namespace
        bool is_public;
    };
    static bool is_access(std::string_view word) {
        return word == "public" || word == "private" || word == "protected";
    }
    bool is_public() const {
        return std::all_of(scopes_.begin(), scopes_.end(),
                           [](const scope& s) { return s.is_public; });
    }
    bool has(std::size_t begin, std::size_t end, std::string_view what) const {
        for (std::size_t i = begin; i < end; ++i) {
            if (file_.at(i) == what) return true;
        }
        return false;
    }
    // Enters a namespace or a class.
    bool opens_scope(std::size_t begin, std::size_t open) {
        const std::size_t at = past_heads(file_, begin, open);
        if (file_.at(at) == "namespace" || file_.at(at + 1) == "namespace") {
            scopes_.push_back({"", true});
            return true;
        }
        if (file_.at(at) != "class" && file_.at(at) != "struct") return false;
        std::size_t name = at + 1;
        while (file_.at(name) == "[" || file_.at(name) == "alignas") {
            if (file_.at(name) == "alignas") ++name;
            name = closing(file_.tokens, name) + 1;
        }
        while (file_.at(name + 1) == "::" || file_.at(name + 1) == "<") {
            const std::size_t next =
                file_.at(name + 1) == "<" ? past_angles(file_, name + 1) : name + 1;
            if (file_.at(next) != "::") break;
            name = next + 1;
        }
        if (has(name, open, "(")) return false;  // a function that returns a struct
        scopes_.push_back({std::string(file_.at(name)), file_.at(at) == "struct"});
        return true;
    }
    // Reads `inline constexpr then_t then`, before its braces.
    void object(std::size_t begin, std::size_t end) {
        if (!file_.under("include/coppice/exec/") || end < begin + 4 || !scopes_are_namespaces() ||
            file_.at(begin) != "inline" || file_.at(begin + 1) != "constexpr") {
            return;
        }
        const std::string_view name = file_.at(end - 1);
        if (std::string(name) + "_t" != file_.at(end - 2)) return;
        if (name.starts_with("get_") || name.starts_with("set_")) return;
        if (!is_one_of(name, not_operations)) keep(end - 1);
    }
    bool scopes_are_namespaces() const {
        return std::all_of(scopes_.begin(), scopes_.end(),
                           [](const scope& s) { return s.name.empty(); });
    }
    // Reads the declaration before the parenthesis `open`.
    void function(std::size_t begin, std::size_t open) {
        if (open == begin || !is_public() || named_before(begin, open)) return;
        const std::size_t at = past_heads(file_, begin, open);
        const std::string_view first = file_.at(at);
        const std::string_view name = file_.at(open - 1);
        if (first == "friend" || first == "using" || first == "return" || open < at + 2 ||
            !is_word(name[0]) || file_.at(open - 2) == "::" ||
            is_one_of(name, parts_of_operations)) {
            return;
        }
        bool waits = has(begin, at, "use_await_t");
        for (std::size_t i = at; i + 1 < open; ++i) {
            const bool gives_task = file_.at(i) == "task" && file_.at(i + 1) == "<";
            waits = waits || gives_task || senders_.contains(std::string(file_.at(i)));
        }
        const bool in_class = !scopes_.empty() && !scopes_.back().name.empty();
        if (in_class && name.starts_with("schedule") && !name.starts_with("schedule_bulk")) {
            waits = waits || name == "schedule_after" || name == "schedule_at";
        }
        if (waits) keep(open - 1);
    }
    // Returns true if an earlier parenthesis of the declaration had the name.
    bool named_before(std::size_t begin, std::size_t open) const {
        const std::size_t at = past_heads(file_, begin, open);
        for (std::size_t i = at; i < open; ++i) {
            if (file_.at(i) == "(" || file_.at(i) == "=") return true;
            if (file_.at(i) == "<") i = past_angles(file_, i) - 1;
        }
        return false;
    }
    void keep(std::size_t name) {
        std::string full(file_.at(name));
        if (!scopes_.empty() && !scopes_.back().name.empty()) {
            full = scopes_.back().name + "::" + full;
        }
        all.push_back({std::move(full), file_.tokens[name].line});
    }

    const source_file& file_;
    std::set<std::string>& senders_;
    std::vector<scope> scopes_;
};

// Returns the names at the beginning of texts in a line, with or without `::`.
inline std::vector<std::string> names_in_texts(std::string_view line) {
    std::vector<std::string> names;
    for (std::size_t open = line.find('"'); open != line.npos;) {
        const std::size_t close = line.find('"', open + 1);
        if (close == line.npos) break;
        const std::string_view text = line.substr(open + 1, close - open - 1);
        names.emplace_back(text.substr(0, text.find_first_of(" ,")));
        open = line.find('"', close + 1);
    }
    return names;
}

inline void unstopped_operations(const tree& files, findings& out) {
    std::set<std::string> senders;
    for (const source_file& file : files) {
        if (file.is_header() && file.under("include/coppice/")) operations_of(file, senders);
    }
    std::set<std::string> listed, known;
    for (const source_file& file : files) {
        if (!file.under("tests/compose/every_operation")) continue;
        for (const std::string& line : file.lines) {
            for (std::string& name : names_in_texts(line)) listed.insert(std::move(name));
        }
    }
    for (const source_file& file : files) {
        if (!file.is_header() || !file.under("include/coppice/")) continue;
        if (file.under("include/coppice/token/")) continue;
        for (const named_operation& o : operations_of(file, senders).all) {
            known.insert(o.name);
            if (listed.contains(o.name)) continue;
            out.push_back(file.found(o.line, o.name + " is stopped by no test: write in " +
                                                 "tests/compose/every_operation how it waits"));
        }
    }
    for (const source_file& file : files) {
        if (!file.under("tests/compose/every_operation")) continue;
        for (std::size_t i = 0; i != file.lines.size(); ++i) {
            for (const std::string& name : names_in_texts(file.lines[i])) {
                if (name.find("::") == std::string::npos || known.contains(name)) continue;
                out.push_back(file.found(i + 1, name + " is no longer an asynchronous function"));
            }
        }
    }
}

}  // namespace tidy
