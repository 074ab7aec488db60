// DRAMsim3's MemorySystem over Sardonyx's library. The class has no members, so that it has one size whichever of
// DRAMsim3's two headers a program was compiled with; its state is found by its address.
#include "dramsim3.h"

#include <atomic>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "config.h"
#include "sardonyx.h"

namespace dramsim3 {
namespace {

using Callback = std::function<void(uint64_t)>;

// More than any controller has at a time.
constexpr uint32_t kSlots = 1u << 24;

struct State {
    sardonyx_memory memory = 0;
    std::string output_dir;
    int queue = 0;
    Callback read, write;
    // What was added and has no answer: addresses by slot, which is the low part of the tag.
    std::vector<uint64_t> addresses;
    std::vector<uint32_t> free_slots;
    uint64_t added = 0, ticks = 0, cycle_ps = 0;

    // The port's view of a request, for host.log; time as a program that counts ticks has it.
    int64_t Note(uint32_t event, uint64_t tag) const {
        return sardonyx_note(memory, SARDONYX_PORT, event, tag, ticks * cycle_ps, 64);
    }

    ~State() { sardonyx_destroy(memory); }
};

std::mutex table_mutex;
std::unordered_map<const MemorySystem *, std::unique_ptr<State>> table;
// Grows when an object is made or ends: what a thread remembers is of no use then.
std::atomic<uint64_t> changes{1};

[[noreturn]] void Fail(const std::string &where) {
    throw std::runtime_error("sardonyx: " + where + ": " + sardonyx_error());
}

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

void Told(State &state) {
    sardonyx_answer answers[8];
    int64_t count;
    do {
        count = sardonyx_answers(state.memory, answers, 8);
        if (count < 0) Fail("answers");
        for (int64_t i = 0; i < count; i++) {
            const Callback &callback = answers[i].what == SARDONYX_READ ? state.read : state.write;
            const uint32_t slot = static_cast<uint32_t>(answers[i].tag) & (kSlots - 1);
            const uint64_t address = state.addresses[slot];
            state.free_slots.push_back(slot);
            if (state.Note(SARDONYX_DONE, answers[i].tag) < 0) Fail("log");
            if (callback) callback(address);
        }
    } while (count == 8);
}

}  // namespace

MemorySystem::MemorySystem(const std::string &config_file, const std::string &output_dir,
                           Callback read_callback, Callback write_callback) {
    const sardonyx_face::Config config = sardonyx_face::Read(config_file);
    std::vector<const char *> settings;
    for (const std::string &setting : config.settings) settings.push_back(setting.c_str());
    auto state = std::unique_ptr<State>(new State);
    state->memory = sardonyx_create(config.machine.c_str(), config.design.c_str(), settings.data(), settings.size());
    if (!state->memory) Fail(config_file);
    state->output_dir = output_dir;
    state->cycle_ps = sardonyx_cycle(state->memory);
    state->queue = config.queue ? config.queue : static_cast<int>(sardonyx_ingress(state->memory));
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
    const int64_t waiting = sardonyx_tick(state.memory);
    if (waiting < 0) Fail("ClockTick");
    if (waiting > 0) Told(state);
}

void MemorySystem::RegisterCallbacks(Callback read_callback, Callback write_callback) {
    State &state = Of(this);
    state.read = std::move(read_callback);
    state.write = std::move(write_callback);
}

double MemorySystem::GetTCK() const { return static_cast<double>(sardonyx_cycle(Of(this).memory)) / 1000.0; }

// A transaction is a line of 64 bytes, whatever the medium's bus: eight bursts of 64 bits.
int MemorySystem::GetBusBits() const { return 64; }

int MemorySystem::GetBurstLength() const { return 8; }

int MemorySystem::GetQueueSize() const { return Of(this).queue; }

void MemorySystem::PrintStats() const {
    const State &state = Of(this);
    const char *figures = sardonyx_figures(state.memory);
    if (!figures) Fail("PrintStats");
    const std::string path = (state.output_dir.empty() ? "." : state.output_dir) + "/dramsim3.json";
    std::ofstream file(path);
    file << figures << "\n";
    if (!file.flush()) throw std::runtime_error("sardonyx: " + path + ": cannot be written");
}

void MemorySystem::ResetStats() {
    if (sardonyx_forget_figures(Of(this).memory) < 0) Fail("ResetStats");
}

bool MemorySystem::WillAcceptTransaction(uint64_t, bool) const {
    const int64_t accepts = sardonyx_accepts(Of(this).memory);
    if (accepts < 0) Fail("WillAcceptTransaction");
    return accepts == 1;
}

bool MemorySystem::AddTransaction(uint64_t hex_addr, bool is_write) {
    State &state = Of(this);
    if (state.free_slots.empty()) {
        if (state.addresses.size() == kSlots) throw std::runtime_error("sardonyx: too many transactions wait");
        state.free_slots.push_back(static_cast<uint32_t>(state.addresses.size()));
        state.addresses.push_back(0);
    }
    const uint32_t slot = state.free_slots.back();
    sardonyx_request request{};
    request.address = hex_addr & ~uint64_t{63};
    request.tag = state.added * kSlots + slot;
    request.presented_ps = SARDONYX_NOW;
    request.size = 64;
    request.kind = is_write ? SARDONYX_WRITE : SARDONYX_READ;
    const int64_t sent = sardonyx_send(state.memory, &request);
    if (sent < 0) Fail("AddTransaction");
    if (sent == 0) return false;
    if (state.Note(SARDONYX_ASKED, request.tag) < 0) Fail("log");
    state.free_slots.pop_back();
    state.addresses[slot] = hex_addr;
    state.added++;
    return true;
}

MemorySystem *GetMemorySystem(const std::string &config_file, const std::string &output_dir, Callback read_callback,
                              Callback write_callback) {
    return new MemorySystem(config_file, output_dir, std::move(read_callback), std::move(write_callback));
}

}  // namespace dramsim3

// Configure scripts look for it.
extern "C" void libdramsim3_is_present(void) {}
