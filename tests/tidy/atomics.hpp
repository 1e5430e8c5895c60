// The law of atomics: one seam, every memory order spelled, every edge named on both halves.
#pragma once
// Edges are read as the model driver reads them (tests/model/model.hpp): `edge NAME (half)` in a
// comment on the operation's line, or alone on the line directly above it. If a function called
// there makes the operation, the comment ends with its name: `; the load is in sleep_while`.

#include "house.hpp"

#include <map>
#include <set>

namespace tidy {

// Returns true for files that may name std's atomics: the seam, and programs that use the library.
inline bool behind_the_seam(const source_file& file) {
    return file.under("include/coppice/base/internal/atomic") || file.under("examples/") ||
           file.under("apps/") || file.under("tests/package/") || file.under("tests/names/");
}

inline void atomics_outside_the_seam(const tree& files, findings& out) {
    static constexpr std::string_view message =
        "only base/internal/atomic.hpp names the language's atomics";
    for (const source_file& file : files) {
        if (behind_the_seam(file)) continue;
        for (const include& i : file.includes) {
            if (i.target == "atomic" || i.target == "stdatomic.h")
                out.push_back(file.found(i.line, "<" + i.target + ">: " + std::string(message)));
        }
        for (std::size_t t = 0; t != file.tokens.size(); ++t) {
            const std::string& word = file.tokens[t].text;
            const bool standard =
                (word.starts_with("atomic") || word.starts_with("memory_order")) &&
                file.at(t - 1) == "::" && file.at(t - 2) == "std";
            const bool builtin = word.starts_with("__atomic_") || word.starts_with("__sync_") ||
                                 word.starts_with("__c11_atomic") || word == "_Atomic";
            if (standard || builtin)
                out.push_back(file.found(file.tokens[t].line, word + ": " + std::string(message)));
        }
    }
}

// One call of an atomic operation or of fence().
struct atomic_call {
    std::string name;
    std::size_t line;
    std::vector<std::vector<std::string>> arguments;  // the tokens of each
    std::set<std::string> orders;                     // the orders that the call spells
};

inline bool is_order(std::string_view word) {
    return word == "relaxed" || word == "acquire" || word == "release" || word == "acq_rel" ||
           word == "seq_cst";
}

// Returns true if an argument is an order: one of the five, or a parameter that passes one on.
inline bool passes_order(const std::vector<std::string>& argument) {
    return !argument.empty() &&
           (is_order(argument.back()) || argument.back() == "success" ||
            argument.back() == "failure" || argument.back().ends_with("order"));
}

inline std::vector<std::vector<std::string>> arguments(const std::vector<token>& tokens,
                                                       std::size_t open, std::size_t close) {
    std::vector<std::vector<std::string>> list;
    std::size_t depth = 0;
    std::size_t angles = 0;  // depth of argument lists: `name<` directly after `::` or a cast
    for (std::size_t i = open + 1; i < close; ++i) {
        const std::string& word = tokens[i].text;
        if (word == "(" || word == "[" || word == "{") ++depth;
        if (word == ")" || word == "]" || word == "}") --depth;
        if (word == "<" && (angles != 0 || tokens[i - 1].text.ends_with("_cast") ||
                            (i >= 2 && tokens[i - 2].text == "::")))
            ++angles;
        if (word == ">" && angles != 0) --angles;
        if (list.empty() || (word == "," && depth == 0 && angles == 0)) list.emplace_back();
        if (word != "," || depth != 0 || angles != 0) list.back().push_back(word);
    }
    return list;
}

inline bool is_operation(std::string_view name) {
    return name == "load" || name == "store" || name == "exchange" || name.starts_with("fetch_") ||
           name == "compare_exchange_weak" || name == "compare_exchange_strong";
}

inline bool is_asymmetric(std::string_view name) {
    return name == "light_fence" || name == "heavy_fence";
}

inline std::vector<atomic_call> atomic_calls(const source_file& file) {
    std::vector<atomic_call> calls;
    for (std::size_t i = 0; i + 1 < file.tokens.size(); ++i) {
        const std::string& name = file.tokens[i].text;
        if (file.at(i + 1) != "(") continue;
        const bool member = file.at(i - 1) == "." || file.at(i - 1) == "->";
        const bool fence = name == "fence" || is_asymmetric(name);
        if (!(member && is_operation(name)) && !(!member && fence)) continue;
        const std::size_t close = closing(file.tokens, i + 1);
        atomic_call call{name, file.tokens[i].line, arguments(file.tokens, i + 1, close), {}};
        for (const auto& argument : call.arguments) {
            // `internal::acquire`, or a condition that chooses between two orders.
            if (argument.size() <= 9 && passes_order(argument)) call.orders.insert(argument.back());
        }
        if (name == "fence" && call.orders.empty()) continue;  // its declaration
        calls.push_back(std::move(call));
    }
    return calls;
}

inline void implicit_orders(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (behind_the_seam(file)) continue;
        for (const atomic_call& call : atomic_calls(file)) {
            if (call.name.ends_with("fence")) continue;
            const bool exchange = call.name.starts_with("compare_");
            const std::size_t first = exchange ? 2 : call.name == "load" ? 0 : 1;
            bool spelled = call.arguments.size() > first + exchange;
            for (std::size_t i = first; spelled && i <= first + exchange; ++i)
                spelled = passes_order(call.arguments[i]);
            if (spelled) continue;
            out.push_back(file.found(
                call.line, call.name + "() spells " +
                               (exchange ? "not both of its memory orders" : "no memory order") +
                               "; for anything but an atomic, choose another name"));
        }
    }
}

// Returns the names declared as atomic<...> in this file: fields and variables.
inline std::set<std::string> atomic_names(const source_file& file) {
    std::set<std::string> names;
    for (std::size_t i = 0; i + 1 < file.tokens.size(); ++i) {
        if (file.at(i) != "atomic" || file.at(i + 1) != "<") continue;
        std::size_t depth = 0;
        std::size_t end = i + 1;
        for (; end != file.tokens.size(); ++end) {
            if (file.at(end) == "<") ++depth;
            if (file.at(end) == ">" && --depth == 0) break;
        }
        while (file.at(end + 1) == "&" || file.at(end + 1) == "const") ++end;
        const std::string_view name = file.at(end + 1);
        // Only the names of private fields and used globals mean one thing in a file.
        if (!name.empty() && is_word(name[0]) && file.at(end + 2) != "(")
            names.insert(std::string(name));
    }
    return names;
}

// `x_ = v`, `++x_`, and the like on an atomic are seq_cst without spelling it.
inline void operators_on_atomics(const tree& files, findings& out) {
    static const std::set<std::string_view> assigning = {
        "=", "+=", "-=", "|=", "&=", "^=", "++", "--"};
    for (const source_file& file : files) {
        if (behind_the_seam(file)) continue;
        std::set<std::string> names = atomic_names(file);
        for (const source_file& header : files) {
            // The fields used in src/room/x.cpp are declared in include/coppice/room/x.hpp.
            if (file.under("src/") && header.under("include/") && stem(header) == stem(file) &&
                room_of(header) == room_of(file))
                names.merge(atomic_names(header));
        }
        for (std::size_t i = 0; i != file.tokens.size(); ++i) {
            const std::string& name = file.tokens[i].text;
            if (!names.contains(name)) continue;
            const bool member =
                name.ends_with('_') || file.at(i - 1) == "." || file.at(i - 1) == "->";
            const bool declared = file.at(i - 1) == ">" || file.at(i - 1) == "&";
            const std::string_view after = file.at(i + 1);
            const bool before = file.at(i - 1) == "++" || file.at(i - 1) == "--";
            if (member && !declared && (before || assigning.contains(after))) {
                out.push_back(
                    file.found(file.tokens[i].line, "'" + name +
                                                        "' is atomic: call an operation and spell "
                                                        "its memory order"));
            }
        }
    }
}

// base/internal/asymmetric.hpp makes its two fences of ordinary ones. The users of the two name the
// edges.
inline bool makes_fences(const source_file& file) {
    return behind_the_seam(file) || (room_of(file) == "base" && stem(file) == "asymmetric");
}

struct edge_mention {
    std::string name;
    std::string half;
    std::size_t line;
    std::size_t operation_line;
    std::string callee;  // the function that makes the operation, if another one does
};

// Returns the mentions of a file. Without a space before its parenthesis, a mention has no half.
inline std::vector<edge_mention> edges(const source_file& file) {
    static constexpr std::string_view mark = "edge ";
    std::vector<edge_mention> mentions;
    for (std::size_t index = 0; index != file.comments.size(); ++index) {
        const std::string& text = file.comments[index];
        for (std::size_t at = text.find(mark); at != std::string::npos;
             at = text.find(mark, at + 1)) {
            if (at > 0 && is_word(text[at - 1])) continue;
            const std::size_t begin = at + mark.size();
            std::size_t end = begin;
            while (end < text.size() && (is_word(text[end]) || text[end] == '.')) ++end;
            const std::string name = text.substr(begin, end - begin);
            const std::string rest = text.substr(end);
            if (name.find('.') == std::string::npos || name.ends_with('.')) continue;
            if (!rest.starts_with(" (") && !rest.starts_with("(")) continue;
            const std::string half =
                rest.starts_with(" (") ? rest.substr(2, rest.find(')') - 2) : std::string();
            const bool alone = blank(file.code[index]);
            const std::size_t inside = rest.find(" is in ");
            const std::string callee =
                rest.find("; the ") < inside && inside != std::string::npos
                    ? rest.substr(inside + 7, rest.find_first_of(" .,", inside + 7) - inside - 7)
                    : std::string();
            mentions.push_back({name, half, index + 1, index + (alone ? 2 : 1), callee});
        }
    }
    return mentions;
}

// Returns true for a source file of the library, but not for a page beside the sources.
inline bool is_library(const source_file& file) {
    return (file.under("include/") || file.under("src/")) && !file.is_document() &&
           !behind_the_seam(file);
}

// The kernel has the other half of an edge kernel.*, so no text here and no model can hold it.
inline bool shared_with_kernel(const edge_mention& edge) {
    return edge.name.starts_with("kernel.");
}

inline bool is_half(std::string_view half) {
    return (is_order(half) && half != "relaxed") || half == "light" || half == "heavy";
}

// Each name needs a releasing and an acquiring half. A lone acq_rel pairs with itself on another
// thread; a lone seq_cst orders nothing and needs its partner, as a light fence needs a heavy one.
inline void unpaired_edges(const tree& files, findings& out) {
    struct seen {
        std::set<std::string> halves;
        std::size_t count = 0;
        finding first;
    };
    std::map<std::string, seen> names;
    for (const source_file& file : files) {
        if (!is_library(file)) continue;
        for (const edge_mention& edge : edges(file)) {
            if (!is_half(edge.half)) {
                out.push_back(
                    file.found(edge.line, "edge " + edge.name +
                                              ": write ' (half)', one of "
                                              "release, acquire, acq_rel, seq_cst, light, heavy"));
                continue;
            }
            if (shared_with_kernel(edge)) continue;
            seen& s = names[edge.name];
            if (s.count++ == 0) s.first = file.found(edge.line, "");
            s.halves.insert(edge.half);
        }
    }
    for (auto& [name, s] : names) {
        const auto has = [&, &halves = s.halves](auto... any) {
            return (halves.contains(any) || ...);
        };
        const char* missing = nullptr;
        if (has("light") != has("heavy")) {
            missing = has("light") ? "heavy half" : "light half";
        } else if (has("light")) {
            continue;
        } else if (!has("release", "acq_rel", "seq_cst")) {
            missing = "releasing half";
        } else if (!has("acquire", "acq_rel", "seq_cst")) {
            missing = "acquiring half";
        } else if (s.count == 1 && has("seq_cst")) {
            missing = "partner";
        }
        if (missing == nullptr) continue;
        s.first.message = "edge " + name + " has no " + missing;
        out.push_back(s.first);
    }
}

inline bool fits(std::string_view half, const atomic_call& call) {
    if (half == "light" || half == "heavy") return call.name == std::string(half) + "_fence";
    if (call.orders.contains("seq_cst")) return true;
    if (half == "acq_rel" || half == "seq_cst") return call.orders.contains(std::string(half));
    return call.orders.contains("acq_rel") || call.orders.contains(std::string(half));
}

// The model driver weakens the operation on an edge's line, so that half must have one there.
inline void misplaced_edges(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (makes_fences(file)) continue;
        const std::vector<atomic_call> calls = atomic_calls(file);
        for (const edge_mention& edge : edges(file)) {
            if (edge.callee.empty()) {
                const auto stands = [&](const atomic_call& c) {
                    return c.line == edge.operation_line && fits(edge.half, c);
                };
                if (std::any_of(calls.begin(), calls.end(), stands)) continue;
                out.push_back(file.found(
                    edge.line, "edge " + edge.name + ": no " + edge.half +
                                   " operation on this line or, if it stands alone, on the next; "
                                   "if it is in what is called, say '; the ... is in NAME'"));
            } else if (edge.operation_line > file.code.size() ||
                       !has_word(file.code[edge.operation_line - 1], edge.callee)) {
                out.push_back(file.found(
                    edge.line, "edge " + edge.name + ": " + edge.callee + " is not called here"));
            }
        }
    }
}

inline void unnamed_edges(const tree& files, findings& out) {
    for (const source_file& file : files) {
        if (!is_library(file) || makes_fences(file)) continue;
        const std::vector<edge_mention> mentions = edges(file);
        for (const atomic_call& call : atomic_calls(file)) {
            const bool ordered =
                is_asymmetric(call.name) || std::any_of(call.orders.begin(), call.orders.end(),
                                                        [](auto& order) { return is_half(order); });
            const bool named = std::any_of(mentions.begin(), mentions.end(), [&](auto& edge) {
                return edge.operation_line == call.line;
            });
            if (ordered && !named) {
                out.push_back(file.found(call.line, call.name +
                                                        "() orders something: name its edge, "
                                                        "`// edge room.name (half): ...`"));
            }
        }
    }
}

// Edges that no model weakens, with the reason.
struct unmodelled {
    std::string_view name;
    std::string_view reason;
};
inline constexpr unmodelled edges_without_model[] = {
    {"pool.default", "one pointer, written under a mutex: the shape of seam.message"},
    {"pool.call", "one waiter and one waker around a futex: the shape of seam.futex"},
    {"context.guard",
     "a count whose last decrement is seen by an acquire: the shape of seam.message"},
    {"contract.owner", "the last of several decrements deletes: the shape of seam.message"},
    {"engine.ring", "a count that a futex compares, beside the mailbox: the shape of seam.futex"},
    {"failure_watch.state", "a flag that a futex waits for: the shape of seam.futex"},
    {"process_timer.delivered",
     "a flag that is taken back after the stop is shown: the shape of seam.message"},
    {"signals.list", "a list that only grows, published and read: the shape of seam.message"},
    {"signals.come", "a bit that is set and taken away: the shape of seam.message"},
};

// Every edge and every planted() of the library is a mutant of some model.
inline void unmodelled_edges(const tree& files, findings& out) {
    std::string models;
    for (const source_file& file : files) {
        if (file.under("tests/model/") && file.path.ends_with("_model.cpp")) models += file.text;
    }
    const auto modelled = [&](std::string_view name) {
        return models.find("\"" + std::string(name) + "\"") != std::string::npos ||
               std::any_of(std::begin(edges_without_model), std::end(edges_without_model),
                           [&](const unmodelled& u) { return u.name == name; });
    };
    for (const source_file& file : files) {
        if (!is_library(file) || !file.is_cpp()) continue;
        std::set<std::string> reported;
        for (const edge_mention& edge : edges(file)) {
            if (shared_with_kernel(edge)) continue;
            if (!modelled(edge.name) && reported.insert(edge.name).second)
                out.push_back(file.found(edge.line, "edge " + edge.name + " is in no model"));
        }
        for (std::size_t i = 0; i != file.lines.size(); ++i) {
            const std::size_t call = file.code[i].find("planted(\"");
            if (call == std::string::npos) continue;
            const std::string name = file.lines[i].substr(call + 9);
            if (!modelled(name.substr(0, name.find('"'))))
                out.push_back(file.found(
                    i + 1, "planted(\"" + name.substr(0, name.find('"')) + "\") is in no model"));
        }
    }
}

// Every edge has a row in the page that lists them.
inline void undocumented_edges(const tree& files, findings& out) {
    std::string page = " ";
    for (const source_file& file : files) {
        if (file.path == "docs/memory-model.md") page += file.text;
    }
    for (char& c : page) {
        if (c == ',' || c == '|') c = ' ';
    }
    for (const source_file& file : files) {
        if (!is_library(file) || !file.is_cpp()) continue;
        std::set<std::string> reported;
        for (const edge_mention& edge : edges(file)) {
            if (page.find(" " + edge.name + " ") == std::string::npos &&
                reported.insert(edge.name).second) {
                out.push_back(
                    file.found(edge.line, "docs/memory-model.md has no edge " + edge.name));
            }
        }
    }
}

}  // namespace tidy
