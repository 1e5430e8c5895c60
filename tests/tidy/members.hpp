// The law of public members: what users call on a class is documented where it is declared.
#pragma once
// The law covers the public functions and fields of classes at namespace scope that users meet
// (names.hpp) in headers that an umbrella includes, and of their public bases. A member is
// documented if one of its overloads is. A comment documents a function if it stands behind a line
// of the function's head, directly above it, or above its run of declarations with bodies of at
// most one line. The comment of a class documents a constructor that it mentions. No comment is
// needed for defaulted and deleted members, copies, moves, destructors, overriders, comparisons,
// and the names that a concept of the library or of C++ demands and explains.

#include "house.hpp"
#include "names.hpp"

namespace tidy {

// Members that concepts demand of senders, receivers, schedulers, awaiters, promises, and others.
inline constexpr const char* concept_members[] = {"affine",
                                                  "as_awaitable",
                                                  "await_ready",
                                                  "await_resume",
                                                  "await_suspend",
                                                  "await_transform",
                                                  "begin",
                                                  "connect",
                                                  "end",
                                                  "final_suspend",
                                                  "get_completion_signatures",
                                                  "get_env",
                                                  "get_return_object",
                                                  "initial_suspend",
                                                  "query",
                                                  "return_value",
                                                  "return_void",
                                                  "schedule",
                                                  "set_error",
                                                  "set_stopped",
                                                  "set_value",
                                                  "start",
                                                  "stop_possible",
                                                  "stop_requested",
                                                  "swap",
                                                  "unhandled_exception"};

struct member {
    std::string name;
    std::size_t first;  // line of its first token
    std::size_t last;   // line of its head's last token, before a body
};

// The public functions and fields of a class whose body is the braces at `open`.
class public_members {
public:
    public_members(const source_file& file, std::string_view class_name, std::size_t open,
                   bool is_public)
        : file_(file), class_(class_name) {
        const std::size_t end = closing(file.tokens, open);
        std::size_t begin = open + 1;
        for (std::size_t i = begin; i < end; ++i) {
            const std::string_view word = file.at(i);
            if (i == begin && file.at(i + 1) == ":" &&
                (word == "public" || word == "private" || word == "protected")) {
                is_public = word == "public";
                begin = ++i + 1;
            } else if (word == "(" || word == "[") {
                i = closing(file.tokens, i);
            } else if (word == ";") {
                if (is_public) read(begin, i);
                begin = i + 1;
            } else if (word == "{") {
                const std::size_t close = closing(file.tokens, i);
                const std::string_view after = file.at(close + 1);
                if (after != ";" && after != "," && after != "{") {
                    if (is_public) read(begin, i);
                    begin = close + 1;
                }
                i = close;
            }
        }
    }
    std::vector<member> all;

private:
    // Tokens [begin, end): a declaration without its body.
    void read(std::size_t begin, std::size_t end) {
        const std::size_t at = past_heads(file_, begin, end);
        const std::string_view first = file_.at(at);
        for (const char* const other :
             {"friend", "using", "static_assert", "typedef", "class", "struct", "enum", "union"}) {
            if (first == other) return;
        }
        const std::size_t name = name_of(at, end);
        if (name == end || needs_none(at, name, end)) return;
        std::size_t last = name;
        while (last + 1 < end && file_.at(last + 1) != ":" && file_.at(last + 1) != "{") ++last;
        all.push_back(
            {std::string(file_.at(name)), file_.tokens[begin].line, file_.tokens[last].line});
    }
    // Returns the name token of the declaration [at, end): before the parameters, the initializer,
    // or the end.
    std::size_t name_of(std::size_t at, std::size_t end) const {
        for (std::size_t i = at; i < end; ++i) {
            const std::string_view word = file_.at(i);
            if (word == "operator") return i;
            if (word == "explicit" && file_.at(i + 1) == "(") i = closing(file_.tokens, i + 1);
            if (word == "alignas" || word == "decltype" || word == "[") {
                const std::size_t open = word == "[" ? i : i + 1;
                if (word == "[" && i != at && is_word(file_.at(i - 1)[0])) return i - 1;  // array
                i = closing(file_.tokens, open);
                continue;
            }
            if (word == "<") i = past_angles(file_, i) - 1;
            if (word == "(" || word == "=" || word == "{") return i == at ? end : i - 1;
        }
        return end > at && is_word(file_.at(end - 1)[0]) ? end - 1 : end;
    }
    bool needs_none(std::size_t at, std::size_t name, std::size_t end) const {
        const std::string_view word = file_.at(name);
        if (name != at && file_.at(name - 1) == "~") return true;
        for (const char* const demanded : concept_members) {
            if (word == demanded) return true;
        }
        for (std::size_t i = name; i < end; ++i) {
            const std::string_view later = file_.at(i);
            if (later == "override" || later == "default" || later == "delete") return true;
        }
        if (word == "operator") {
            const std::string_view which = file_.at(name + 1);
            return which == "==" || which == "<" || which == "<=" ||  // also <=>
                   which == "co_await" || (which == "=" && of_itself(name + 2));
        }
        return word == class_ && of_itself(name + 1);
    }
    // Returns true if the parameters at `open` begin with X, X&&, X&, or const X&.
    bool of_itself(std::size_t open) const {
        std::size_t at = open + 1;
        if (file_.at(at) == "const") ++at;
        return file_.at(at) == class_;
    }

    const source_file& file_;
    std::string_view class_;
};

inline bool has_comment(const source_file& file, const member& m) {
    for (std::size_t line = m.first; line <= m.last; ++line) {
        if (!blank(file.comments[line - 1])) return true;
    }
    const auto ends = [&](std::size_t line, std::string_view with) {
        return file.code[line].substr(0, file.code[line].find_last_not_of(' ') + 1).ends_with(with);
    };
    for (std::size_t i = m.first - 1; i-- > 0;) {
        if (blank(file.lines[i])) return false;
        if (blank(file.code[i])) return !blank(file.comments[i]);
        if (ends(i, "    }") && i > 2 && ends(i - 2, " {")) {
            i -= 2;  // a body of one line does not end the run
        } else if (ends(i, "    }") || ends(i, " {") || ends(i, "public:")) {
            return false;
        }
    }
    return false;
}

// Returns true if the comment above the class mentions its constructor.
inline bool speaks_of_constructor(const source_file& file, const declaration& type) {
    for (std::size_t i = type.first - 1; i-- > 0 && blank(file.code[i]);) {
        if (has_word(file.comments[i], "constructor")) return true;
        if (blank(file.lines[i])) return false;
    }
    return false;
}

// Returns the direct and indirect public bases of the classes that users meet.
inline std::set<std::string> public_bases(const tree& files, const std::set<std::string>& met,
                                          const std::set<std::string>& offered) {
    std::set<std::string> bases;
    for (bool more = true; more;) {
        const std::size_t before = bases.size();
        for (const source_file& file : files) {
            if (!file.is_header() || !file.under("include/coppice/")) continue;
            for (const declaration& d : namespace_scope(file).all) {
                const bool counts = met.contains(d.name) && offered.contains(file.path);
                if (d.body == 0 || !(counts || bases.contains(d.name))) continue;
                bool is_public = d.is_struct;
                for (std::size_t i = d.head; i < d.body; ++i) {
                    const std::string_view word = file.at(i);
                    if (word == "public" || word == "private" || word == "protected") {
                        is_public = word == "public";
                    } else if (word == ",") {
                        is_public = d.is_struct;
                    } else if (word == "<") {
                        i = past_angles(file, i) - 1;
                    } else if (is_public && is_word(word[0]) && file.at(i + 1) != "::") {
                        bases.emplace(word);
                    }
                }
            }
        }
        more = bases.size() != before;
    }
    return bases;
}

inline void undocumented_members(const tree& files, findings& out) {
    const std::set<std::string> met = met_by_users(files);
    std::set<std::string> offered;
    for (const source_file& file : files) {
        if (!is_umbrella(file)) continue;
        for (const include& i : file.includes) offered.insert("include/" + i.target);
    }
    const std::set<std::string> bases = public_bases(files, met, offered);
    for (const source_file& file : files) {
        if (!file.is_header() || !file.under("include/coppice/")) continue;
        for (const declaration& d : namespace_scope(file).all) {
            const bool counts = met.contains(d.name) && offered.contains(file.path);
            if (d.body == 0 || !(counts || bases.contains(d.name))) continue;
            const public_members members(file, d.name, d.body, d.is_struct);
            std::set<std::string> documented;
            if (speaks_of_constructor(file, d)) documented.insert(d.name);
            for (const member& m : members.all) {
                if (has_comment(file, m)) documented.insert(m.name);
            }
            for (const member& m : members.all) {
                if (documented.contains(m.name)) continue;
                out.push_back(
                    file.found(m.first, d.name + "::" + m.name + " is public and undocumented"));
            }
        }
    }
}

}  // namespace tidy
