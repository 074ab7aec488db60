// DRAMsim3's face: the same names and signatures, so that a program written for it is linked to Sardonyx's
// libdramsim3 unchanged. docs/hosts/simulators.md says what its configuration files are.
#ifndef __MEMORY_SYSTEM__H
#define __MEMORY_SYSTEM__H

#include <cstdint>
#include <functional>
#include <string>

namespace dramsim3 {

// Has no members, like the one in DRAMsim3's own dramsim3.h: what it knows is the library's. Errors are exceptions
// (std::runtime_error). Not to be copied.
class MemorySystem {
   public:
    MemorySystem(const std::string &config_file, const std::string &output_dir,
                 std::function<void(uint64_t)> read_callback,
                 std::function<void(uint64_t)> write_callback);
    ~MemorySystem();
    void ClockTick();
    void RegisterCallbacks(std::function<void(uint64_t)> read_callback,
                           std::function<void(uint64_t)> write_callback);
    double GetTCK() const;
    int GetBusBits() const;
    int GetBurstLength() const;
    int GetQueueSize() const;
    void PrintStats() const;
    void ResetStats();

    bool WillAcceptTransaction(uint64_t hex_addr, bool is_write) const;
    bool AddTransaction(uint64_t hex_addr, bool is_write);
};

MemorySystem *GetMemorySystem(const std::string &config_file, const std::string &output_dir,
                              std::function<void(uint64_t)> read_callback,
                              std::function<void(uint64_t)> write_callback);
}  // namespace dramsim3

#endif
