// Latency against bandwidth of any library that has DRAMsim3's MemorySystem: the same requests at the same cycles,
// whichever is linked. dramsim3_curve CONFIG OUTPUT_DIR random|stream READ_PERCENT CYCLES
// A line for each load: requests offered in 100 cycles, GB/s, mean latency of reads in ns from being added, and
// requests a second of this computer's time.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>

#include "dramsim3.h"

int main(int count, char **words) {
    if (count < 6) return 2;
    const bool streams = std::string(words[3]) == "stream";
    const uint64_t percent = std::strtoull(words[4], nullptr, 10), cycles = std::strtoull(words[5], nullptr, 10);
    for (uint64_t load : {1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 25, 40}) {
        uint64_t now = 0, answered = 0, reads = 0, waited = 0, added = 0, sequence = 0, offered = 0;
        std::unordered_map<uint64_t, std::deque<uint64_t>> open;
        auto read = [&](uint64_t address) {
            auto &since = open[address];
            waited += now - since.front();
            since.pop_front();
            reads++;
            answered++;
        };
        std::unique_ptr<dramsim3::MemorySystem> memory(
            dramsim3::GetMemorySystem(words[1], words[2], read, [&](uint64_t) { answered++; }));
        std::mt19937_64 random(7);
        uint64_t address = 0, waits = 0;
        bool is_write = false, next = true;
        const auto began = std::chrono::steady_clock::now();
        for (; now < cycles; now++) {
            memory->ClockTick();
            offered += load;
            if (offered >= 100) {
                offered -= 100;
                if (waits < 1000) waits++;
            }
            while (waits > 0) {
                if (next) {
                    const uint64_t line = streams ? sequence % 8 * ((1 << 20) + 384) + sequence / 8 : random() >> 34;
                    address = line * 64;
                    is_write = random() % 100 >= percent;
                    sequence++;
                }
                next = memory->WillAcceptTransaction(address, is_write);
                if (!next || !memory->AddTransaction(address, is_write)) break;
                if (!is_write) open[address].push_back(now);
                added++;
                waits--;
            }
        }
        const uint64_t in_time = answered;
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
        for (uint64_t more = 0; more < 1000000 && answered < added; more++, now++) memory->ClockTick();
        if (answered != added || reads == 0) {
            std::fprintf(stderr, "%llu added, %llu answered\n", (unsigned long long)added, (unsigned long long)answered);
            return 1;
        }
        const double tck = memory->GetTCK();
        std::printf("%llu %.3f %.2f %.0f\n", (unsigned long long)load,
                    static_cast<double>(in_time) * 64 / (static_cast<double>(cycles) * tck),
                    static_cast<double>(waited) * tck / static_cast<double>(reads), static_cast<double>(in_time) / took.count());
    }
    return 0;
}
