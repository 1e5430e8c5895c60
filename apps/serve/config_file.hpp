// Reads the file of --config more strictly than CLI11 alone does.
#pragma once

#include <CLI/CLI.hpp>

#include <istream>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace serve {

// CLI11 keeps only the first of two values if other lines are between them. A limit must not depend
// on that, so a name may be in the file once. Lifetime: the app's.
class config_file final : public CLI::ConfigTOML {
public:
    explicit config_file(const CLI::App& app) : app_(app) {}

    // Errors: CLI::ParseError, which names the flag.
    std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
        std::vector<CLI::ConfigItem> read;
        std::set<const CLI::Option*> seen;
        for (CLI::ConfigItem& item : CLI::ConfigTOML::from_config(input)) {
            const CLI::Option* const option = option_of(item);
            if (option != nullptr && !seen.insert(option).second) {
                throw CLI::ValidationError(option->get_name(),
                                           "the file of --config has it more than once");
            }
            // CLI11 counts a switch that is false as one that is given.
            const bool is_off = option != nullptr && option->get_configurable() &&
                                option->get_expected_min() == 0 &&
                                item.inputs == std::vector<std::string>{"false"};
            if (!is_off) read.push_back(std::move(item));
        }
        return read;
    }

private:
    // Returns nullptr for an unknown name and for a section, which CLI11 refuses.
    const CLI::Option* option_of(const CLI::ConfigItem& item) const {
        if (!item.parents.empty()) return nullptr;
        const CLI::Option* const option = app_.get_option_no_throw("--" + item.name);
        return option != nullptr ? option : app_.get_option_no_throw(item.name);
    }

    const CLI::App& app_;
};

}  // namespace serve
