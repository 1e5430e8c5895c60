// Flags that the programs in apps share, and their checks.
#pragma once

#include <coppice/io/endpoint.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace common {

// Returns what is wrong with an address; "" if nothing is.
inline std::string refuse_other_than_address(const std::string& text) {
    if (coppice::io::endpoint::parse(text, 1)) return "";
    return "'" + text + "' is not an IPv4 or IPv6 address, like 127.0.0.1 or ::";
}

// Adds --address and --port.
inline void add_place(CLI::App& app, std::string& address, std::uint16_t& port) {
    app.add_option("--address", address, "IPv4 or IPv6 address to listen on")
        ->check(refuse_other_than_address)
        ->capture_default_str();
    app.add_option("--port", port, "TCP port; 0 lets the system choose")
        ->check(CLI::Range(0, 65535))
        ->capture_default_str();
}

// Adds a flag for a time, which must have a unit. Units: `ms` is milliseconds.
inline void add_time(CLI::App& app, const std::string& flag, std::int64_t& ms,
                     const std::string& help) {
    static const std::map<std::string, std::int64_t> units{{"ms", 1}, {"s", 1000}, {"m", 60'000}};
    app.add_option(flag, ms, help + ": 500ms, 5s, 1m; an hour at most")
        ->transform(CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::UNIT_REQUIRED))
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{3'600'000}))
        ->type_name("TIME")
        ->default_str(std::to_string(ms / 1000) + "s");
}

// Lets the switches that were added have no other values than true and false; CLI11 takes 2 and
// "yes" too.
inline void refuse_other_switches(CLI::App& app) {
    const auto is_switch = [](CLI::Option* o) { return o->get_expected_min() == 0; };
    for (CLI::Option* const each : app.get_options(is_switch)) {
        each->check([](const std::string& text) {
            return text == "true" || text == "false" ? "" : "'" + text + "' is not true or false";
        });
    }
}

}  // namespace common
