// The law of public names: a name that users meet is documented where it is declared.
#pragma once
// Users meet a name that a header declares at namespace scope if an example uses it or a document
// mentions it in backticks. The name is documented if one of its declarations is: a comment stands
// directly above it (above its template head, or above its group of declarations without a blank
// line) or behind it on its line. A header's first comment documents its namesake, and a type's
// comment documents its object, `inline constexpr then_t then{};`.

#include "source.hpp"

#include <map>
#include <set>

namespace tidy {

struct declaration {
    std::string name;
    std::string type;   // of an object `inline constexpr type name`, or ""
    std::size_t first;  // line of its first token
    std::size_t line;   // line of its name
    std::size_t head;   // the token after its name
    std::size_t body;   // the token that opens a class, otherwise 0
    bool is_struct;
    std::string space;  // the namespace of the declaration: coppice::io
};

// Returns the token past the template arguments or parameters that `open` opens.
inline std::size_t past_angles(const source_file& file, std::size_t open) {
    std::size_t depth = 0;
    for (std::size_t i = open; i < file.tokens.size(); ++i) {
        const std::string_view word = file.at(i);
        if (word == "(" || word == "{") i = closing(file.tokens, i);
        if (word == "<") ++depth;
        if (word == ">" && --depth == 0) return i + 1;
    }
    return file.tokens.size();
}

// Returns the token past `X<T> && (Y)` after `requires`: terms joined by && and ||.
inline std::size_t past_condition(const source_file& file, std::size_t at, std::size_t end) {
    while (at < end) {
        if (file.at(at) == "(") {
            at = closing(file.tokens, at) + 1;
        } else {
            while (at < end && (is_word(file.at(at)[0]) || file.at(at) == "::") &&
                   (file.at(at + 1) == "::" || file.at(at) == "::"))
                ++at;
            ++at;
            if (file.at(at) == "<") at = past_angles(file, at);
        }
        if (file.at(at) != "&&" && file.at(at) != "||") break;
        ++at;
    }
    return at;
}

// Returns the token past a declaration's template heads, conditions, and attributes.
inline std::size_t past_heads(const source_file& file, std::size_t at, std::size_t end) {
    while (file.at(at) == "template" || file.at(at) == "requires" || file.at(at) == "[") {
        at = file.at(at) == "template"   ? past_angles(file, at + 1)
             : file.at(at) == "requires" ? past_condition(file, at + 1, end)
                                         : closing(file.tokens, at) + 1;
    }
    return at;
}

// The declarations of a header at namespace scope: types, functions, aliases, concepts, objects.
// Deduction guides, friends, and definitions of members have no names of their own.
class namespace_scope {
public:
    explicit namespace_scope(const source_file& file) : file_(file) {
        std::size_t begin = 0;
        for (std::size_t i = 0; i < file.tokens.size(); ++i) {
            const std::string_view word = file.at(i);
            const bool inlined = word == "inline" && file.at(i + 1) == "namespace";
            if ((word == "namespace" || inlined) && i == begin) {
                std::string name;
                for (i += 1 + inlined; i < file.tokens.size(); ++i) {
                    if (file.at(i) == "{" || file.at(i) == ";") break;
                    name += file.at(i);
                }
                if (file.at(i) == "{") enter(inlined ? "" : name);
                begin = i + 1;
            } else if (word == "}") {
                if (!spaces_.empty()) spaces_.pop_back();
                begin = i + 1;
            } else if (word == "(" || word == "[") {
                i = closing(file.tokens, i);
            } else if (word == ";") {
                read(begin, i);
                begin = i + 1;
            } else if (word == "{") {
                const std::size_t close = closing(file.tokens, i);
                // A semicolon follows a type or a value, and nothing follows a function's body. A
                // braced member initializer still belongs to its constructor.
                const std::string_view after = file.at(close + 1);
                if (after != ";" && after != "," && after != "{") {
                    read(begin, i);
                    begin = close + 1;
                }
                i = close;
            }
        }
    }
    std::vector<declaration> all;
    std::vector<declaration> brought;  // by using-declarations, `using execution::task;`

private:
    // The names of an inline namespace belong to the enclosing namespace.
    void enter(const std::string& name) {
        const std::string outer = spaces_.empty() ? "" : spaces_.back();
        spaces_.push_back(outer.empty() || name.empty() ? outer + name : outer + "::" + name);
    }
    // Reads tokens [begin, end), without the brackets after the name.
    void read(std::size_t begin, std::size_t end) {
        std::size_t at = past_heads(file_, begin, end);
        if (at >= end) return;
        const std::string_view first = file_.at(at);
        if (first == "friend" || first == "static_assert" || first == "extern") return;
        if (first == "using" || first == "concept") {
            if (file_.at(at + 2) == "=") keep(begin, at + 1, "");
            if (first == "using" && file_.at(end - 2) == "::") {
                keep(begin, end - 1, "");
                brought.push_back(all.back());
                all.pop_back();
            }
            return;
        }
        if (first == "class" || first == "struct" || first == "enum" || first == "union") {
            ++at;
            while (file_.at(at) == "class" || file_.at(at) == "struct" || file_.at(at) == "[" ||
                   file_.at(at) == "alignas") {
                if (file_.at(at) == "alignas") ++at;
                at = file_.at(at) == "[" || file_.at(at) == "(" ? closing(file_.tokens, at) + 1
                                                                : at + 1;
            }
            if (file_.at(at + 1) == ";" || at + 1 == end) return;  // declared, not defined
            if (file_.at(at + 1) == "<") return;                   // a specialization
            keep(begin, at, "");
            if (first == "enum" || file_.at(at + 1) == "::") return;
            std::size_t open = at;
            while (open < end && file_.at(open) != "{")
                open = file_.at(open) == "<" ? past_angles(file_, open) : open + 1;
            all.back().body = open < end ? open : 0;
            all.back().is_struct = first == "struct";
            return;
        }
        value_or_function(begin, at, end);
    }
    void value_or_function(std::size_t begin, std::size_t at, std::size_t end) {
        for (std::size_t i = at; i != end; ++i) {
            const std::string_view word = file_.at(i);
            if (word == "->") return;  // a deduction guide, or a name was found before
            if (word == "(" || word == "{" || word == "=" || word == ";") {
                if (i == at || file_.at(i - 1) == ">" || file_.at(i - 2) == "::") return;
                if (word == "(" && i == at + 1) return;  // no result type: a guide
                keep(begin, i - 1, word == "{" || word == "=" ? file_.at(i - 2) : "");
                return;
            }
            if (word == "<") i = past_angles(file_, i) - 1;
        }
        if (end > at + 1) keep(begin, end - 1, file_.at(end - 2));  // `constexpr type name;`
    }
    void keep(std::size_t begin, std::size_t name, std::string_view type) {
        if (!is_word(file_.at(name)[0])) return;
        all.push_back({std::string(file_.at(name)), std::string(type), file_.tokens[begin].line,
                       file_.tokens[name].line, name + 1, 0, false,
                       spaces_.empty() ? "" : spaces_.back()});
    }

    const source_file& file_;
    std::vector<std::string> spaces_;  // the open namespaces, each qualified
};

// Returns true if a comment belongs to the declaration: behind its name's line, or above it with
// only declarations of its group between.
inline bool has_comment(const source_file& file, const declaration& d) {
    if (!blank(file.comments[d.line - 1])) return true;
    for (std::size_t i = d.first - 1; i-- > 0;) {
        if (blank(file.lines[i])) return false;
        if (blank(file.code[i])) return !blank(file.comments[i]);
        if (file.code[i].starts_with("namespace") || file.code[i].starts_with("}")) return false;
    }
    return false;
}

// Returns the words that users meet: in examples, and in the backticks of documents.
inline std::set<std::string> met_by_users(const tree& files) {
    std::set<std::string> words;
    const auto add = [&](std::string_view text) {
        for (std::size_t i = 0; i < text.size();) {
            std::size_t end = i;
            while (end < text.size() && is_word(text[end])) ++end;
            if (end != i) words.emplace(text.substr(i, end - i));
            i = end + 1;
        }
    };
    for (const source_file& file : files) {
        if (file.under("examples/")) {
            for (const token& t : file.tokens) words.insert(t.text);
        }
        if (!file.is_document() || file.under("docs/decisions/")) continue;
        for (const std::string& line : file.lines) {
            std::size_t open = line.find('`');
            while (open != std::string::npos) {
                const std::size_t close = line.find('`', open + 1);
                if (close == std::string::npos) break;
                add(std::string_view(line).substr(open + 1, close - open - 1));
                open = line.find('`', close + 1);
            }
        }
    }
    return words;
}

inline void undocumented_names(const tree& files, findings& out) {
    const std::set<std::string> met = met_by_users(files);
    std::map<std::string, finding> missing;
    std::set<std::string> documented;
    std::vector<std::pair<std::string, std::string>> objects;  // name, type
    for (const source_file& file : files) {
        if (!file.is_header() || !file.under("include/coppice/")) continue;
        for (const declaration& d : namespace_scope(file).all) {
            const bool namesake = file.path.ends_with("/" + d.name + ".hpp");
            if (namesake || has_comment(file, d)) documented.insert(d.name);
            if (!d.type.empty()) objects.emplace_back(d.name, d.type);
            if (met.contains(d.name))
                missing.emplace(d.name, file.found(d.line, d.name + " is public and undocumented"));
        }
    }
    for (const auto& [name, type] : objects) {
        if (documented.contains(type)) documented.insert(name);
    }
    for (const auto& [name, where] : missing) {
        if (!documented.contains(name)) out.push_back(where);
    }
}

// Returns the names of docs/names.md: those in backticks in the second column of its table.
inline std::map<std::string, std::size_t> listed_names(const source_file& page) {
    std::map<std::string, std::size_t> names;
    for (std::size_t i = 0; i != page.lines.size(); ++i) {
        const std::string& line = page.lines[i];
        if (!line.starts_with("|")) continue;
        std::size_t open = line.find('`', line.find('|', 1));
        while (open != std::string::npos) {
            const std::size_t close = line.find('`', open + 1);
            if (close == std::string::npos) break;
            names.emplace(line.substr(open + 1, close - open - 1), i + 1);
            open = line.find('`', close + 1);
        }
    }
    return names;
}

// `using namespace coppice` brings into a program exactly the names that docs/names.md lists.
inline void unlisted_names(const tree& files, findings& out) {
    const auto page = std::find_if(files.begin(), files.end(), [](const source_file& file) {
        return file.path == "docs/names.md";
    });
    std::map<std::string, std::size_t> listed;
    if (page != files.end()) listed = listed_names(*page);
    std::set<std::string> found;
    for (const source_file& file : files) {
        if (!file.is_header() || !file.under("include/coppice/")) continue;
        namespace_scope scope(file);
        scope.all.insert(scope.all.end(), scope.brought.begin(), scope.brought.end());
        for (const declaration& d : scope.all) {
            std::string name = d.name;
            if (d.space.starts_with("coppice::")) {
                name = d.space.substr(9, d.space.find("::", 9) - 9);  // an inner namespace
                if (name == "internal" || found.contains(name)) continue;
            } else if (d.space != "coppice") {
                continue;
            }
            found.insert(name);
            if (!listed.contains(name))
                out.push_back(file.found(d.line, name + ": move it into coppice::internal, or "
                                                        "list it in docs/names.md"));
        }
    }
    for (const auto& [name, line] : listed) {
        if (!found.contains(name)) out.push_back(page->found(line, name + " is declared nowhere"));
    }
}

}  // namespace tidy
