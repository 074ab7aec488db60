// What a configuration file of a MemorySystem says: a machine, a design and settings of Sardonyx's.
#ifndef SARDONYX_DRAMSIM3_CONFIG_H
#define SARDONYX_DRAMSIM3_CONFIG_H

#include <string>
#include <vector>

namespace sardonyx_face {

struct Config {
    std::string machine, design;
    std::vector<std::string> settings;
    // Entries of a transaction queue, as DRAMsim3's file has them; 0: the machine's own number.
    int queue = 0;
};

// Reads a file NAME.ini; another name is a machine's. Throws std::runtime_error.
Config Read(const std::string &config_file);

}  // namespace sardonyx_face

#endif
