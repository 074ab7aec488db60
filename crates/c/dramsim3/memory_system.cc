// DRAMsim3's MemorySystem over Sardonyx's library. The class has no members, so that it has one size whichever of
// DRAMsim3's two headers a program was compiled with; its state is found by its address.
#include "dramsim3.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <unordered_map>

#include "config.h"
#include "sardonyx_coupling.hh"

namespace dramsim3 {
namespace {

// What waits at most before a transaction is refused, if the configuration does not say: DRAMsim3's own default.
constexpr int kQueue = 32;

using Callback = std::function<void(uint64_t)>;

struct Transaction {
    uint64_t address;
    bool is_write;
};

struct State {
    sardonyx::Coupling<Transaction> memory;
    std::string output_dir;
    int queue;
    Callback read, write;
    uint64_t ticks = 0, cycle_ps;

    State(const sardonyx_face::Config &config, const std::string &output, int size)
        : memory(config.machine, config.design, config.settings, size), output_dir(output), queue(size),
          cycle_ps(sardonyx_cycle(memory.handle())) {}
};

std::mutex table_mutex;
std::unordered_map<const MemorySystem *, std::unique_ptr<State>> table;
// Grows when an object is made or ends: what a thread remembers is of no use then.
std::atomic<uint64_t> changes{1};

State &Of(const MemorySystem *system) {
    thread_local const MemorySystem *last = nullptr;
    thread_local State *state = nullptr;
    thread_local uint64_t seen = 0;
    const uint64_t now = changes.load(std::memory_order_acquire);
    if (last != system || seen != now) {
        std::lock_guard<std::mutex> lock(table_mutex);
        auto found = table.find(system);
        if (found == table.end()) {
            throw std::runtime_error("sardonyx: this MemorySystem was copied; use a pointer to it");
        }
        last = system;
        state = found->second.get();
        seen = now;
    }
    return *state;
}

}  // namespace

MemorySystem::MemorySystem(const std::string &config_file, const std::string &output_dir,
                           Callback read_callback, Callback write_callback) {
    const sardonyx_face::Config config = sardonyx_face::Read(config_file);
    auto state = std::unique_ptr<State>(new State(config, output_dir, config.queue ? config.queue : kQueue));
    state->read = std::move(read_callback);
    state->write = std::move(write_callback);
    std::lock_guard<std::mutex> lock(table_mutex);
    table[this] = std::move(state);
    changes++;
}

MemorySystem::~MemorySystem() {
    std::lock_guard<std::mutex> lock(table_mutex);
    table.erase(this);
    changes++;
}

void MemorySystem::ClockTick() {
    State &state = Of(this);
    state.ticks++;
    state.memory.Advance(state.ticks * state.cycle_ps, [&state](Transaction done) {
        const Callback &callback = done.is_write ? state.write : state.read;
        if (callback) callback(done.address);
    });
}

void MemorySystem::RegisterCallbacks(Callback read_callback, Callback write_callback) {
    State &state = Of(this);
    state.read = std::move(read_callback);
    state.write = std::move(write_callback);
}

double MemorySystem::GetTCK() const { return static_cast<double>(Of(this).cycle_ps) / 1000.0; }

// A transaction is a line of 64 bytes, whatever the medium's bus: eight bursts of 64 bits.
int MemorySystem::GetBusBits() const { return 64; }

int MemorySystem::GetBurstLength() const { return 8; }

int MemorySystem::GetQueueSize() const { return Of(this).queue; }

void MemorySystem::PrintStats() const {
    State &state = Of(this);
    state.memory.WriteFigures((state.output_dir.empty() ? "." : state.output_dir) + "/dramsim3.json");
}

void MemorySystem::ResetStats() {
    const auto &memory = Of(this).memory;
    memory.Ok(sardonyx_forget_figures(memory.handle()), "ResetStats");
}

bool MemorySystem::WillAcceptTransaction(uint64_t, bool) const { return Of(this).memory.Accepts(); }

bool MemorySystem::AddTransaction(uint64_t hex_addr, bool is_write) {
    State &state = Of(this);
    if (!state.memory.Accepts()) return false;
    const sardonyx::Access access{hex_addr & ~uint64_t{63}, 64, is_write, 0, nullptr, 0};
    return state.memory.Present({hex_addr, is_write}, access, state.ticks * state.cycle_ps);
}

MemorySystem *GetMemorySystem(const std::string &config_file, const std::string &output_dir, Callback read_callback,
                              Callback write_callback) {
    return new MemorySystem(config_file, output_dir, std::move(read_callback), std::move(write_callback));
}

}  // namespace dramsim3

// Configure scripts look for it.
extern "C" void libdramsim3_is_present(void) {}
