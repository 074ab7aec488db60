// Reads configuration files: Sardonyx's section. What DRAMsim3's own sections say of a memory the library reads.
#include "config.h"

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>

namespace sardonyx_face {
namespace {

using Sections = std::map<std::string, std::map<std::string, std::string>>;

std::string Trimmed(const std::string &text) {
    size_t from = 0, to = text.size();
    while (from < to && std::isspace(static_cast<unsigned char>(text[from]))) from++;
    while (to > from && std::isspace(static_cast<unsigned char>(text[to - 1]))) to--;
    return text.substr(from, to - from);
}

std::string FromEnvironment(const char *name, const std::string &otherwise) {
    const char *value = std::getenv(name);
    return value && *value ? value : otherwise;
}

[[noreturn]] void Stop(const std::string &file, const std::string &what) {
    throw std::runtime_error("sardonyx: " + file + ": " + what);
}

Sections Parsed(const std::string &config_file) {
    std::ifstream file(config_file);
    if (!file) Stop(config_file, "cannot be read");
    Sections sections;
    std::string section = "sardonyx";
    for (std::string line; std::getline(file, line);) {
        line = Trimmed(line.substr(0, line.find_first_of(";#")));
        if (line.empty()) continue;
        if (line[0] == '[') {
            section = Trimmed(line.substr(1, line.find(']') - 1));
            sections[section];
            continue;
        }
        const size_t equals = line.find('=');
        if (equals == std::string::npos) Stop(config_file, "\"" + line + "\": give KEY=VALUE");
        sections[section][Trimmed(line.substr(0, equals))] = Trimmed(line.substr(equals + 1));
    }
    return sections;
}

}  // namespace

Config Read(const std::string &config_file) {
    Config config;
    config.design = FromEnvironment("SARDONYX_DESIGN", "no-encryption");
    config.settings.push_back("addresses=wrapped");
    if (config_file.size() < 5 || config_file.substr(config_file.size() - 4) != ".ini") {
        config.machine = config_file;
        return config;
    }
    Sections sections = Parsed(config_file);
    auto ours = sections["sardonyx"];
    sections.erase("sardonyx");
    config.machine = FromEnvironment("SARDONYX_MACHINE", ours["machine"]);
    if (!ours["design"].empty()) config.design = ours["design"];
    if (!config.machine.empty() && !sections.empty()) {
        std::cerr << "sardonyx: " << config_file << ": the machine " << config.machine
                  << " stands in for what DRAMsim3's sections say\n";
    } else if (config.machine.empty() && sections.empty()) {
        Stop(config_file, "no machine; give machine=NAME");
    } else if (config.machine.empty()) {
        config.machine = config_file;
        const std::string queue = sections["system"]["trans_queue_size"];
        config.queue = queue.empty() ? 32 : std::atoi(queue.c_str());
    }
    for (const auto &pair : ours) {
        if (pair.first != "machine" && pair.first != "design") {
            config.settings.push_back(pair.first + "=" + pair.second);
        }
    }
    return config;
}

}  // namespace sardonyx_face
