// Reads configuration files: Sardonyx's section, and what DRAMsim3's own sections say of a DDR3 or DDR4 memory.
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

// What DRAMsim3's sections say, key by key, as it reads them itself.
class Theirs {
   public:
    Theirs(const std::string &file, const Sections &sections) : file_(file), sections_(sections) {}

    std::string Word(const std::string &section, const std::string &key, const std::string &otherwise) const {
        auto found = sections_.find(section);
        if (found == sections_.end()) return otherwise;
        auto value = found->second.find(key);
        return value == found->second.end() ? otherwise : value->second;
    }

    double Real(const std::string &section, const std::string &key, double otherwise) const {
        const std::string word = Word(section, key, "");
        if (word.empty()) return otherwise;
        char *end = nullptr;
        const double value = std::strtod(word.c_str(), &end);
        if (*end || !(value >= 0) || value > 1e9) {
            Stop(file_, section + "." + key + " = " + word + ": not a number from 0 to 1e9");
        }
        return value;
    }

    long Number(const std::string &section, const std::string &key, long otherwise) const {
        const double value = Real(section, key, static_cast<double>(otherwise));
        if (value != static_cast<double>(static_cast<long>(value))) {
            Stop(file_, section + "." + key + ": not a whole number");
        }
        return static_cast<long>(value);
    }

   private:
    const std::string &file_;
    const Sections &sections_;
};

// DRAMsim3's order of fields as ours, which has one field for banks and bank groups: where the banks stand.
std::string Mapping(const std::string &file, const std::string &theirs) {
    static const std::map<std::string, std::string> names = {
        {"ch", "channel"}, {"ra", "rank"}, {"ba", "bank"}, {"ro", "row"}, {"co", "column"}};
    std::string ours;
    size_t group = 0, bank = 0, fields = 0;
    for (size_t at = 0; at + 1 < theirs.size(); at += 2) {
        const std::string field = theirs.substr(at, 2);
        if (field == "bg") {
            group = at;
            continue;
        }
        if (field == "ba") bank = at;
        auto found = names.find(field);
        if (found == names.end() || ours.find(found->second) != std::string::npos) {
            Stop(file, "system.address_mapping = " + theirs + ": not the six fields ch, ra, bg, ba, ro and co");
        }
        ours += (ours.empty() ? "" : ":") + found->second;
        fields++;
    }
    if (fields != 5) Stop(file, "system.address_mapping = " + theirs + ": not six fields");
    if (group + 2 != bank && bank + 2 != group) {
        std::cerr << "sardonyx: " << file << ": banks and bank groups are one field here, where " << theirs
                  << " has the banks\n";
    }
    return ours;
}

void Translate(const std::string &file, const Theirs &theirs, Config &config) {
    const std::string protocol = theirs.Word("dram_structure", "protocol", "DDR3");
    const long bl = theirs.Number("dram_structure", "BL", 8), bus = theirs.Number("system", "bus_width", 64);
    if ((protocol != "DDR3" && protocol != "DDR4") || bl * bus != 512) {
        Stop(file, "protocol " + protocol + " with " + std::to_string(bl * bus / 8) +
                       " bytes a transaction: DDR3 and DDR4 with 64 are read; let SARDONYX_MACHINE name a machine");
    }
    auto set = [&config](const std::string &key, const std::string &value) {
        config.settings.push_back("medium." + key + "=" + value);
    };
    auto same = [&](const char *ours, const char *key, long otherwise) {
        set(std::string("timing.") + ours, std::to_string(theirs.Number("timing", key, otherwise)));
    };
    set("timing.clock_ns", std::to_string(theirs.Real("timing", "tCK", 1.0)));
    const long al = theirs.Number("timing", "AL", 0);
    set("timing.tCL", std::to_string(al + theirs.Number("timing", "CL", 12)));
    set("timing.tCWD", std::to_string(al + theirs.Number("timing", "CWL", 12)));
    set("timing.tBURST", std::to_string(bl / 2));
    // Between bank groups, where there are any: the engine has none.
    const bool grouped = protocol == "DDR4";
    same("tCCD", grouped ? "tCCD_S" : "tCCD_L", 4);
    same("tRRD", grouped ? "tRRD_S" : "tRRD_L", 4);
    same("tWTR", grouped ? "tWTR_S" : "tWTR_L", 5);
    same("tRCD", "tRCD", 10);
    same("tRP", "tRP", 10);
    same("tRAS", "tRAS", 24);
    same("tRTP", "tRTP", 5);
    same("tRTRS", "tRTRS", 2);
    same("tFAW", "tFAW", 50);
    same("tWR", "tWR", 10);
    same("tRFC", "tRFC", 74);
    same("tREFI", "tREFI", 7800);
    set("timing.tWP", "0");
    set("timing.off_chip", "0");

    const long groups = theirs.Number("dram_structure", "bankgroups", 2);
    const long banks = groups * theirs.Number("dram_structure", "banks_per_group", 2);
    const long rows = theirs.Number("dram_structure", "rows", 1 << 16);
    const long columns = theirs.Number("dram_structure", "columns", 1 << 10);
    const long rank = banks * rows * columns / 8 * bus;  // bytes
    if (rank <= 0) Stop(file, "dram_structure: a rank without bytes");
    const long ranks = theirs.Number("system", "channel_size", 1024) * (1 << 20) / rank;
    set("geometry.channels", std::to_string(theirs.Number("system", "channels", 1)));
    set("geometry.ranks", std::to_string(ranks > 0 ? ranks : 1));
    set("geometry.banks", std::to_string(banks));
    set("geometry.rows", std::to_string(rows));
    set("geometry.columns", std::to_string(columns / bl));
    set("mapping", Mapping(file, theirs.Word("system", "address_mapping", "chrobabgraco")));
    const bool closed = theirs.Word("system", "row_buf_policy", "OPEN_PAGE") == "CLOSE_PAGE";
    set("queues.page", closed ? "closed" : "open");
    config.queue = static_cast<int>(theirs.Number("system", "trans_queue_size", 32));
    // DRAMsim3 moves transactions on to a queue of commands for each bank, where writes wait as well; here they stay in
    // one queue, which has the room of both. When it drains was held to DRAMsim3's curves (docs/hosts/simulators.md).
    const int queue = config.queue;
    set("queues.reads", std::to_string(queue));
    set("queues.writes", std::to_string(2 * queue));
    set("queues.high_watermark", std::to_string(queue));
    set("queues.low_watermark", std::to_string(queue / 4));
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
    config.settings.push_back("host.addresses=wrap");
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
        config.machine = "ddr4-2400";
        Translate(config_file, Theirs(config_file, sections), config);
    }
    for (const auto &pair : ours) {
        if (pair.first != "machine" && pair.first != "design") {
            config.settings.push_back(pair.first + "=" + pair.second);
        }
    }
    return config;
}

}  // namespace sardonyx_face
