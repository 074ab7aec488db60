// Offers the requests of a trace (`ADDRESS READ|WRITE CYCLE`) to the memory of Ramulator 2.1, each at its cycle and as
// many bursts as its 64 bytes are; one that is not taken waits, and holds back those of its kind and channel. Prints the
// mean read latency in ns, from the cycle of the offer, bandwidth in GB/s, and the clock in ns. Arguments: an exported
// machine with an External frontend, the trace, the number of channels.
#include <cstdint>
#include <deque>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "ramulator/base/base.h"
#include "ramulator/base/config.h"
#include "ramulator/base/request.h"
#include "ramulator/frontend/i_frontend.h"
#include "ramulator/memory_system/i_memory_system.h"

struct Burst {
    uint64_t address, at;
    size_t request;
};

int main(int, char **arguments) {
    auto config = Ramulator::Config::parse_config_file(arguments[1]);
    auto *frontend = Ramulator::Factory::create_frontend(config);
    auto *memory = Ramulator::Factory::create_memory_system(config);
    frontend->connect_memory_system(memory);
    memory->connect_frontend(frontend);
    uint64_t bytes = std::min(memory->get_tx_bytes(), 64);
    uint64_t channels = std::stoull(arguments[3]);
    std::vector<std::deque<Burst>> todo[2];
    todo[0].resize(channels);
    todo[1].resize(channels);
    std::ifstream trace(arguments[2]);
    std::string address, kind;
    std::vector<uint64_t> bursts;
    uint64_t at, reads = 0, waiting = 0;
    while (trace >> address >> kind >> at) {
        uint64_t of = std::stoull(address, nullptr, 16);
        for (uint64_t part = of; part < of + 64; part += bytes) {
            todo[kind == "WRITE"][part / bytes % channels].push_back({part, at, bursts.size()});
            waiting++;
        }
        bursts.push_back(64 / bytes);
        reads += kind == "READ";
    }
    uint64_t cycle = 0, waited = 0, answered = 0, last = 0;
    while (answered < reads || waiting > 0) {
        for (int writes = 0; writes < 2; writes++) {
            for (auto &queue : todo[writes]) {
                while (!queue.empty() && queue.front().at <= cycle) {
                    Burst burst = queue.front();
                    std::function<void(Ramulator::Request &)> done;
                    if (!writes) {
                        done = [&, burst](Ramulator::Request &) {
                            if (--bursts[burst.request] == 0) {
                                last = cycle + 1;
                                waited += last - burst.at;
                                answered++;
                            }
                        };
                    }
                    if (!frontend->receive_external_requests(writes, burst.address, 0, done, bytes)) {
                        break;
                    }
                    queue.pop_front();
                    waiting--;
                }
            }
        }
        memory->tick();
        cycle++;
    }
    double clock = memory->get_tCK();
    std::cout << waited * clock / reads << ' ' << bursts.size() * 64 / (last * clock) << ' ' << clock << '\n';
}
