// Offers the requests of a trace (`ADDRESS READ|WRITE CYCLE`) to DRAMsim3's memory, each at its cycle, in order of
// arrival; a request that is not taken waits, and holds back those of its kind and channel. Prints the mean read latency
// in ns, from the cycle of the offer, bandwidth in GB/s, and energies in nJ: standby, activates, reads, writes, refreshes. Arguments:
// a machine's file, the trace, a folder for what DRAMsim3 writes.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <fstream>
#include <iostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "configuration.h"
#include "json.hpp"
#include "memory_system.h"

struct Request {
    uint64_t address, at;
};

int main(int, char **arguments) {
    std::string folder = arguments[3];
    dramsim3::Config config(arguments[1], folder);
    std::vector<std::deque<Request>> todo[2];
    todo[0].resize(config.channels);
    todo[1].resize(config.channels);
    std::ifstream trace(arguments[2]);
    std::string address, kind;
    uint64_t at, count = 0, reads = 0;
    while (trace >> address >> kind >> at) {
        uint64_t of = std::stoull(address, nullptr, 16);
        todo[kind == "WRITE"][config.AddressMapping(of).channel].push_back({of, at});
        reads += kind == "READ";
        count++;
    }
    uint64_t cycle = 0, waited = 0, answered = 0, last = 0;
    std::unordered_map<uint64_t, std::deque<uint64_t>> asked;
    auto read = [&](uint64_t of) {
        waited += cycle - asked[of].front();
        asked[of].pop_front();
        answered++;
        last = cycle;
    };
    dramsim3::MemorySystem memory(arguments[1], folder, read, [](uint64_t) {});
    auto is_empty = [](std::deque<Request> &queue) { return queue.empty(); };
    while (answered < reads || !std::all_of(todo[1].begin(), todo[1].end(), is_empty)) {
        for (int writes = 0; writes < 2; writes++) {
            for (auto &queue : todo[writes]) {
                while (!queue.empty() && queue.front().at <= cycle &&
                       memory.WillAcceptTransaction(queue.front().address, writes)) {
                    if (!writes) {
                        asked[queue.front().address].push_back(queue.front().at);
                    }
                    memory.AddTransaction(queue.front().address, writes);
                    queue.pop_front();
                }
            }
        }
        memory.ClockTick();
        cycle++;
    }
    memory.PrintStats();
    double clock = memory.GetTCK();
    nlohmann::json all;
    std::ifstream(folder + "/dramsim3.json") >> all;
    double parts[5] = {};
    for (auto &channel : all) {
        for (auto &standby : {"act_stb_energy", "pre_stb_energy"}) {
            for (auto &rank : channel[standby]) {
                parts[0] += rank.get<double>();
            }
        }
        const char *names[] = {"act_energy", "read_energy", "write_energy", "ref_energy"};
        for (int part = 0; part < 4; part++) {
            parts[part + 1] += channel[names[part]].get<double>();
        }
    }
    std::cout << waited * clock / reads << ' ' << count * 64 / (last * clock);
    for (double part : parts) {
        std::cout << ' ' << part * clock * 1e-3; // mA x V x cycles
    }
    std::cout << '\n';
}
