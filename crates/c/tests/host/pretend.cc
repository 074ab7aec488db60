// Hosts that behave as gem5's ports and SST's backends do, over the logic that their adapters share. gem5: a crossbar
// that is busy, takes one retry for one refusal and no other, answers that nobody takes at once, functional accesses
// between, cleans before and after their writes. SST: a clock far slower than memory's, the head of a queue presented
// again each cycle. Prints one line; status 1 after the first thing that must not be.
// pretend gem5|sst MACHINE DESIGN LINE_BYTES REQUESTS SEED [SETTING..]
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <queue>
#include <random>

#include "sardonyx_coupling.hh"

namespace {

[[noreturn]] void Wrong(const std::string &what) {
    std::cout << "wrong: " << what << "\n";
    std::exit(1);
}

void Check(bool holds, const std::string &what) {
    if (!holds) Wrong(what);
}

struct Events {
    using Event = std::pair<std::pair<uint64_t, uint64_t>, std::function<void()>>;
    struct Later {
        bool operator()(const Event &a, const Event &b) const { return a.first > b.first; }
    };
    std::priority_queue<Event, std::vector<Event>, Later> queue;
    uint64_t now = 0, number = 0;

    void At(uint64_t ps, std::function<void()> act) { queue.push({{std::max(ps, now), number++}, std::move(act)}); }
    void Run() {
        while (!queue.empty()) {
            const Event event = queue.top();
            queue.pop();
            now = event.first.first;
            event.second();
        }
    }
};

struct Packet {
    enum Kind { kRead, kWrite, kWriteClean, kClean } kind;
    uint64_t address;
    std::vector<uint8_t> bytes; // of a write; of a read, once it was taken
    uint32_t size;
    uint64_t id = 0;            // a clean and its write have the same
    bool satisfied = false;     // the clean's write follows, or has come
};

// The adapter's half, without gem5's types.
struct Memory {
    Events &events;
    sardonyx::Coupling<Packet *> coupling;
    sardonyx::Answers<Packet *> answers;
    std::map<uint64_t, uint8_t> store; // as gem5's backing store
    std::function<void()> retry;
    std::function<bool(Packet *)> respond;
    bool retry_owed = false;
    uint64_t woken = SARDONYX_NEVER;

    Memory(Events &all, const std::string &machine, const std::string &design, const std::vector<std::string> &settings)
        : events(all), coupling(machine, design, settings) {}

    void Advance() {
        coupling.Advance(events.now, [this](Packet *done) {
            answers.Push(done, events.now);
            events.At(events.now, [this] { Give(); });
        });
    }

    void Give() {
        const uint64_t next = answers.Give(events.now, [this](Packet *one) { return respond(one); });
        if (next != SARDONYX_NEVER) events.At(next, [this] { Give(); });
    }

    void Wake() {
        const uint64_t next = coupling.Next(retry_owed);
        if (next == SARDONYX_NEVER) return;
        const uint64_t at = std::max(events.now + 1, next);
        if (woken <= at && woken > events.now) return;
        woken = at;
        events.At(at, [this, at] {
            if (woken != at) return;
            woken = SARDONYX_NEVER;
            Advance();
            if (retry_owed && coupling.Accepts()) {
                retry_owed = false;
                retry();
            }
            Wake();
        });
    }

    bool Timing(Packet *one) {
        Advance();
        bool taken = true;
        if (one->kind == Packet::kClean) {
            coupling.Clean(one, one->address, one->size, one->id, one->satisfied);
        } else {
            const bool is_write = one->kind != Packet::kRead;
            const uint32_t flags = one->kind == Packet::kWriteClean ? SARDONYX_PERSIST : 0;
            if (coupling.Accepts()) Access(one, is_write);
            const uint64_t clean = one->kind == Packet::kWriteClean ? one->id : 0;
            taken = coupling.Present(one, {one->address, one->size, is_write, flags, one->bytes.data(), clean}, events.now);
            retry_owed |= !taken;
        }
        Wake();
        return taken;
    }

    void Access(Packet *one, bool is_write) {
        for (size_t i = 0; i < one->bytes.size(); i++) {
            uint8_t &place = store[one->address + i];
            is_write ? place = one->bytes[i] : one->bytes[i] = place;
        }
    }
};

struct Gem5 {
    Events events;
    Memory memory;
    std::mt19937_64 random;
    uint64_t line, left, taken = 0, answered = 0, refusals = 0, cleans = 0, functional = 0;
    std::deque<Packet *> queue;
    bool waits_for_peer = false, is_busy = false;
    std::map<uint64_t, uint64_t> persistent; // the time at which each WriteClean was in the domain, by id
    uint64_t ids = 1;

    Gem5(const std::string &machine, const std::string &design, const std::vector<std::string> &settings, uint64_t bytes,
         uint64_t requests, uint64_t seed)
        : memory(events, machine, design, settings), random(seed), line(bytes), left(requests) {
        memory.retry = [this] {
            Check(waits_for_peer, "a retry for no refusal"); // gem5's crossbar asserts this
            waits_for_peer = false;
            events.At(events.now + 500, [this] { Send(); });
        };
        memory.respond = [this](Packet *one) { return Respond(one); };
    }

    void Send() {
        if (waits_for_peer || is_busy || queue.empty()) return;
        Packet *one = queue.front();
        if (!memory.Timing(one)) {
            refusals++;
            waits_for_peer = true;
            return;
        }
        queue.pop_front();
        taken++;
        is_busy = true;
        events.At(events.now + 1000, [this] {
            is_busy = false;
            Send();
        });
    }

    bool Respond(Packet *one) {
        if (random() % 8 == 0) { // whoever waits is busy, and takes it later
            events.At(events.now + 3000, [this] {
                memory.answers.Unblock();
                memory.Give();
            });
            return false;
        }
        answered++;
        if (one->kind == Packet::kWriteClean) persistent[one->id] = events.now;
        if (one->kind == Packet::kClean) {
            cleans++;
            Check(!one->satisfied || persistent.count(one->id), "a clean was answered before its line was persistent");
        }
        delete one;
        return true;
    }

    void Make() {
        const uint64_t address = random() % 512 * line;
        const unsigned what = static_cast<unsigned>(random() % 10);
        if (what < 2) Functional(address);
        else if (what < 4) Clean(address);
        else queue.push_back(what < 7 ? new Packet{Packet::kRead, address, std::vector<uint8_t>(line), Size()} : Written(address));
        Send();
        if (--left) events.At(events.now + random() % 8000, [this] { Make(); });
    }

    uint32_t Size() const { return static_cast<uint32_t>(line); }

    Packet *Written(uint64_t address) {
        std::vector<uint8_t> bytes(line, static_cast<uint8_t>(random() % 4));
        bytes[random() % line] = static_cast<uint8_t>(random());
        return new Packet{Packet::kWrite, address, bytes, Size()};
    }

    // In timing mode the cache sends the clean and its write one after the other, in either order.
    void Clean(uint64_t address) {
        Packet *written = Written(address), *clean = new Packet{Packet::kClean, address, {}, Size(), ids, random() % 4 > 0};
        written->kind = Packet::kWriteClean;
        written->id = ids++;
        const bool first = random() % 2;
        queue.push_back(first || !clean->satisfied ? clean : written);
        if (clean->satisfied) queue.push_back(first ? written : clean);
        else delete written;
    }

    // What the library holds is the newest byte that was taken, whatever is on its way.
    void Functional(uint64_t address) {
        functional++;
        std::vector<uint8_t> bytes(line);
        memory.Advance();
        memory.coupling.Look(address, bytes.data(), line);
        for (uint64_t i = 0; i < line; i++) Check(bytes[i] == memory.store[address + i], "a functional read is stale");
        bytes[random() % line] ^= 1;
        memory.coupling.Load(address, bytes.data(), line);
        for (uint64_t i = 0; i < line; i++) memory.store[address + i] = bytes[i];
        memory.Wake();
    }

    void Run() {
        events.At(0, [this] { Make(); });
        events.Run();
        Check(queue.empty() && answered == taken && !memory.coupling.Open(), "a request has no answer");
        std::cout << taken << " taken, " << refusals << " refusals, " << cleans << " cleans, " << functional
                  << " functional\n";
    }
};

void Sst(const std::string &machine, const std::string &design, const std::vector<std::string> &settings, uint64_t line,
         uint64_t requests, uint64_t seed) {
    sardonyx::Coupling<uint64_t> memory(machine, design, settings);
    std::mt19937_64 random(seed);
    const uint64_t cycle = 20000; // 50 MHz
    std::map<uint64_t, uint64_t> open;
    std::deque<std::pair<uint64_t, bool>> queue;
    uint64_t made = 0, taken = 0, refusals = 0;
    std::vector<uint8_t> bytes(line);
    for (uint64_t now = 0; made < requests || !open.empty() || !queue.empty(); now += cycle) {
        Check(now < requests * cycle * 100, "requests that are never answered");
        for (unsigned more = random() % 64; more && made < requests; more--, made++)
            queue.emplace_back(random() % 4096 * line, random() % 3 == 0);
        memory.Advance(now, [&](uint64_t id) { Check(open.erase(id) == 1, "an answer to nothing"); });
        for (; !queue.empty(); queue.pop_front()) {
            bytes[random() % line] = static_cast<uint8_t>(random());
            const unsigned size = static_cast<unsigned>(queue.front().second ? 1 + random() % line : line);
            open.emplace(taken, now);
            if (!memory.Present(taken, {queue.front().first, size, queue.front().second, 0, bytes.data(), 0}, now)) {
                open.erase(taken);
                refusals++;
                break;
            }
            taken++;
        }
        memory.Next(true);
    }
    std::cout << taken << " taken, " << refusals << " refusals\n";
}

} // namespace

int main(int count, char **words) {
    if (count < 7) return 2;
    const std::vector<std::string> settings(words + 7, words + count);
    const uint64_t line = std::strtoull(words[4], nullptr, 10), requests = std::strtoull(words[5], nullptr, 10);
    const uint64_t seed = std::strtoull(words[6], nullptr, 10);
    try {
        if (words[1] == std::string("gem5")) Gem5(words[2], words[3], settings, line, requests, seed).Run();
        else Sst(words[2], words[3], settings, line, requests, seed);
    } catch (const std::runtime_error &error) {
        Wrong(error.what());
    }
}
