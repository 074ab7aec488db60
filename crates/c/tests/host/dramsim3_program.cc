// A program written against DRAMsim3's header alone: random and streaming traffic at full speed. Each read that was
// added is answered once, and so is each write; what was added and not answered at the end is an error.
// dramsim3_program CONFIG OUTPUT_DIR CYCLES
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>

#include "dramsim3.h"

struct Host {
    std::map<uint64_t, uint64_t> reads, writes;
    uint64_t answered = 0, strange = 0;

    void Done(std::map<uint64_t, uint64_t> &open, uint64_t address) {
        auto found = open.find(address);
        if (found == open.end()) {
            strange++;
            return;
        }
        if (--found->second == 0) open.erase(found);
        answered++;
    }
};

int main(int count, char **words) {
    if (count < 4) return 2;
    Host host;
    auto *memory = dramsim3::GetMemorySystem(
        words[1], words[2], [&host](uint64_t address) { host.Done(host.reads, address); },
        [&host](uint64_t address) { host.Done(host.writes, address); });
    // A second one, on the stack, as some hosts have it: it must not disturb the first.
    dramsim3::MemorySystem second(words[1], words[2], nullptr, nullptr);
    second.RegisterCallbacks([&host](uint64_t) { host.strange++; }, [&host](uint64_t) { host.strange++; });

    std::mt19937_64 random(1);
    const uint64_t cycles = std::strtoull(words[3], nullptr, 10);
    uint64_t address = 0, added = 0, refused = 0;
    bool is_write = false, next = true;
    for (uint64_t cycle = 0; cycle < cycles; cycle++) {
        memory->ClockTick();
        second.ClockTick();
        if (next) {
            address = cycle % 2 ? random() : cycle * 64;
            is_write = random() % 3 == 0;
            if (cycle % 101 == 0 && !is_write) address |= ~uint64_t{63}; // the last line of all addresses
        }
        next = memory->WillAcceptTransaction(address, is_write);
        if (next) {
            (is_write ? host.writes : host.reads)[address]++;
            if (!memory->AddTransaction(address, is_write)) return 3;
            added++;
        } else {
            refused++;
        }
        if (cycle == cycles / 2) memory->ResetStats();
    }
    for (uint64_t cycle = 0; cycle < 1000000 && host.answered < added; cycle++) memory->ClockTick();
    memory->PrintStats();
    const bool sane = memory->GetTCK() > 0 && memory->GetQueueSize() > 0 &&
                      memory->GetBusBits() * memory->GetBurstLength() == 512;
    const double memory_tck = memory->GetTCK();
    const int memory_queue = memory->GetQueueSize();
    delete memory;
    std::cout << added << " added, " << refused << " refused, " << host.answered << " answered, " << host.strange
              << " strange; tCK " << memory_tck << " queue " << memory_queue << "\n";
    return sane && added > 0 && host.answered == added && host.strange == 0 ? 0 : 1;
}
