// What the adapters of gem5, SST and DRAMsim3's programs share: a host's requests, of any size and refused while memory
// is full, over Sardonyx's library. It knows no host's types, so tests drive it by hosts of their own.
//
// A request of more than a line goes as parts. When the first part is taken the request is: the others wait here, and
// nothing newer passes them. With `room` that many requests are taken before any is refused, and wait here where memory
// has no place for them. A request that was refused is known when it is presented again: its wait is part of its latency.
#ifndef SARDONYX_COUPLING_HH
#define SARDONYX_COUPLING_HH

#include <sardonyx.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace sardonyx {

constexpr uint32_t kLine = 64;

// The words of a text, as settings are given.
inline std::vector<std::string> Words(const std::string &text) {
    std::istringstream words{text};
    std::vector<std::string> found;
    for (std::string word; words >> word;) found.push_back(word);
    return found;
}

// A request as the host has it. Bytes may be null: the library then draws them (host.contents).
struct Access {
    uint64_t address;
    uint32_t size;
    bool is_write;
    uint32_t flags;
    const uint8_t *bytes;
    // The name that a clean has in common with the write that it causes; 0: no clean caused it.
    uint64_t clean;
};

// A memory whose requests the host names by `Who`, which may be a pointer. Errors are thrown as std::runtime_error with
// the library's words.
template <class Who> class Coupling {
  public:
    Coupling(const std::string &machine, const std::string &design, const std::vector<std::string> &settings,
             size_t room = 0)
        : room_(room) {
        std::vector<const char *> pointers;
        for (const auto &setting : settings) {
            pointers.push_back(setting.c_str());
            logs_ |= setting.compare(0, 9, "host.log=") == 0;
        }
        memory_ = sardonyx_create(machine.c_str(), design.c_str(), pointers.data(), pointers.size());
        if (!memory_) Fail("create");
    }
    Coupling(const Coupling &) = delete;
    Coupling &operator=(const Coupling &) = delete;
    ~Coupling() { sardonyx_destroy(memory_); }

    sardonyx_memory handle() const { return memory_; }

    // Whether a request would be taken now.
    bool Accepts() const {
        return open_ < room_ || (waiting_.empty() && Ok(sardonyx_accepts(memory_), "accepts") == 1);
    }

    // Presents a request at `now_ps`, at which Advance has been. Returns whether it was taken; if not, present it again
    // after something has happened.
    bool Present(Who who, const Access &access, uint64_t now_ps) {
        const bool again = refused_.size == access.size && refused_.address == access.address &&
                           refused_.is_write == access.is_write;
        const uint64_t since = again ? refused_since_ : now_ps;
        if (!Accepts()) {
            refused_ = access;
            refused_since_ = since;
            return false;
        }
        refused_ = Access{};
        Divide(who, access, since, false);
        SendWaiting();
        if (access.clean) Cleaned(access.clean);
        return true;
    }

    // A clean of so many bytes: answered when all that was written there is in the persistence domain. With
    // `write_follows` the write of the same name `clean` is part of that, whichever of the two comes first.
    void Clean(Who who, uint64_t address, uint32_t size, uint64_t clean, bool write_follows) {
        const Access access{address, size, false, 0, nullptr, 0};
        if (write_follows && !written_.erase(clean)) {
            cleans_.emplace(clean, std::make_pair(who, access));
            return;
        }
        Divide(who, access, 0, true);
        SendWaiting();
    }

    // Writes in no time, as a loader or a debugger does: the newest bytes, also where older ones are on their way.
    void Load(uint64_t address, const uint8_t *bytes, size_t size) {
        Ok(sardonyx_functional_write(memory_, 0, address, bytes, size), "functional_write");
        Overlap(address, size, [&](uint8_t *place, uint64_t from, size_t count) {
            std::memcpy(place, bytes + from, count);
        });
    }

    // Reads in no time what was taken last.
    void Look(uint64_t address, uint8_t *bytes, size_t size) {
        Ok(sardonyx_functional_read(memory_, 0, address, bytes, size), "functional_read");
        Overlap(address, size, [&](const uint8_t *place, uint64_t from, size_t count) {
            std::memcpy(bytes + from, place, count);
        });
    }

    // Everything up to `now_ps` happens; `answered(who)` is called once for each request that is done.
    template <class Answered> void Advance(uint64_t now_ps, Answered answered) {
        // Hosts come here at every event of memory: each call that is not made is time won.
        if (Ok(sardonyx_advance_to(memory_, now_ps), "advance_to") > 0) Take(now_ps, answered);
        sent_ = false;
        if (!waiting_.empty()) {
            SendWaiting();
            Take(now_ps, answered);
        }
    }

    // When to call Advance next, after now; SARDONYX_NEVER if nothing is left to happen. With `waits` the host asks for
    // nothing before something happens.
    uint64_t Next(bool waits) {
        if (sent_) {
            sent_ = false;
            const uint64_t now = sardonyx_now(memory_);
            if (Ok(sardonyx_advance_to(memory_, now), "advance_to") > 0) { // an answer was there at once
                sent_ = true;
                return now;
            }
        }
        const uint64_t next = sardonyx_next_event(memory_);
        if (next != SARDONYX_NEVER || !(waits || open_ || !waiting_.empty())) return next;
        Ok(sardonyx_idle(memory_, 0), "idle"); // queued writes go
        return sardonyx_next_event(memory_);
    }

    // Requests that were taken and have no answer, with cleans.
    size_t Open() const { return open_ + cleans_.size(); }

    // Calls `act(who)` for each request without an answer, but for cleans.
    template <class Act> void Each(Act act) {
        for (Request &request : requests_)
            if (request.left && !request.is_flush) act(request.who);
    }

    // Power is off: whoever waits for an answer gets none.
    std::vector<Who> Abandon() {
        std::vector<Who> all;
        for (const Request &request : requests_)
            if (request.left) all.push_back(request.who);
        for (const auto &clean : cleans_) all.push_back(clean.second.first);
        requests_.clear(), free_.clear(), waiting_.clear(), cleans_.clear(), written_.clear();
        refused_ = Access{};
        open_ = 0;
        return all;
    }

    void WriteFigures(const std::string &path) {
        const char *text = sardonyx_figures(memory_);
        if (!text) Fail("figures");
        std::ofstream file(path);
        file << text << "\n";
        if (!file.flush()) throw std::runtime_error("sardonyx: " + path + ": cannot be written");
        Ok(sardonyx_flush_log(memory_), "log");
    }

    int64_t Ok(int64_t result, const char *what) const {
        if (result == SARDONYX_FAILED) Fail(what);
        return result;
    }

    [[noreturn]] void Fail(const std::string &what) const {
        throw std::runtime_error("sardonyx: " + what + ": " + sardonyx_error());
    }

  private:
    // Tags are the number of a part, and below it the slot of its request.
    static constexpr int kSlotBits = 24;

    // Its parts without an answer; none: the slot is free.
    struct Request {
        Who who;
        uint32_t left;
        bool is_flush;
    };

    struct Part {
        sardonyx_request request;
        bool is_flush, has_bytes;
        uint8_t bytes[kLine];
    };

    uint32_t Slot(Who who, bool is_flush) {
        if (free_.empty()) {
            if (requests_.size() >> kSlotBits) throw std::runtime_error("sardonyx: too many requests wait");
            free_.push_back(static_cast<uint32_t>(requests_.size()));
            requests_.push_back(Request{});
        }
        const uint32_t slot = free_.back();
        free_.pop_back();
        requests_[slot] = Request{who, 0, is_flush};
        open_++;
        return slot;
    }

    // Appends the parts of a request, or of a flush.
    void Divide(Who who, const Access &access, uint64_t since, bool is_flush) {
        // The end may be 2^64, which is no address, so bytes are counted.
        if (access.size == 0 || access.size - 1 > UINT64_MAX - access.address) {
            throw std::runtime_error("sardonyx: " + std::to_string(access.size) + " bytes at address " +
                                     std::to_string(access.address) + " are none, or go beyond 2^64");
        }
        const uint32_t slot = Slot(who, is_flush);
        for (uint32_t done = 0, count; done < access.size; done += count) {
            const uint64_t from = access.address + done;
            count = std::min(access.size - done, kLine - static_cast<uint32_t>(from % kLine));
            Part part{};
            part.request.address = from;
            part.request.tag = parts_++ << kSlotBits | slot;
            part.request.presented_ps = since;
            part.request.size = count;
            part.request.kind = access.is_write ? SARDONYX_WRITE : SARDONYX_READ;
            part.request.flags = access.is_write ? access.flags : 0;
            part.is_flush = is_flush;
            part.has_bytes = access.is_write && access.bytes;
            if (part.has_bytes) std::memcpy(part.bytes, access.bytes + done, count);
            waiting_.push_back(part);
            requests_[slot].left++;
        }
    }

    // Calls `act(bytes, from, count)` for what writes that wait here have of so many bytes, which begin `from` there.
    template <class Act> void Overlap(uint64_t address, size_t size, Act act) {
        if (size == 0) return;
        for (Part &part : waiting_) {
            const uint64_t begin = part.request.address;
            const uint64_t from = std::max(address, begin);
            const uint64_t last = std::min(address + (size - 1), begin + (part.request.size - 1));
            if (part.has_bytes && from <= last) act(part.bytes + (from - begin), from - address, last - from + 1);
        }
    }

    void SendWaiting() {
        sent_ = true;
        for (; !waiting_.empty(); waiting_.pop_front()) {
            Part &part = waiting_.front();
            if (part.is_flush) {
                Ok(sardonyx_flush(memory_, part.request.address, 0, part.request.tag), "flush");
                continue;
            }
            part.request.bytes = part.has_bytes ? part.bytes : nullptr;
            if (Ok(sardonyx_send(memory_, &part.request), "send") == 0) return;
            Note(SARDONYX_ASKED, part.request.tag, part.request.presented_ps, part.request.size);
        }
    }

    void Cleaned(uint64_t clean) {
        const auto found = cleans_.find(clean);
        if (found == cleans_.end()) {
            written_.insert(clean);
            return;
        }
        const auto waits = found->second;
        cleans_.erase(found);
        Divide(waits.first, waits.second, 0, true);
        SendWaiting();
    }

    template <class Answered> void Take(uint64_t now_ps, Answered answered) {
        sardonyx_answer answers[16];
        int64_t count;
        do {
            count = Ok(sardonyx_answers(memory_, answers, 16), "answers");
            for (int64_t i = 0; i < count; i++) {
                if (answers[i].what == SARDONYX_IN_ARRAY) continue;
                const uint32_t slot = static_cast<uint32_t>(answers[i].tag & ((1u << kSlotBits) - 1));
                Request &request = requests_[slot];
                if (!request.is_flush) Note(SARDONYX_DONE, answers[i].tag, now_ps, answers[i].size);
                if (--request.left) continue;
                const Who who = request.who;
                free_.push_back(slot);
                open_--;
                answered(who);
            }
        } while (count == 16);
    }

    void Note(uint32_t event, uint64_t tag, uint64_t ps, uint32_t size) const {
        if (!logs_) return;
        Ok(sardonyx_note(memory_, SARDONYX_PORT, event, tag, ps, size), "log");
    }

    sardonyx_memory memory_ = 0;
    size_t room_, open_ = 0;
    bool logs_ = false;
    bool sent_ = false; // something was sent since time last moved, and may be answered at once
    uint64_t parts_ = 1;
    std::vector<Request> requests_;
    std::vector<uint32_t> free_;
    std::deque<Part> waiting_;
    // The request that was refused last, and when it was first presented. Its sender may have made it anew.
    Access refused_{};
    uint64_t refused_since_ = 0;
    // Cleans whose write has not come, and writes whose clean has not come.
    std::unordered_map<uint64_t, std::pair<Who, Access>> cleans_;
    std::unordered_set<uint64_t> written_;
};

// Answers on their way back: in order, each from its own time on, and again after whoever takes them was busy.
template <class Who> class Answers {
  public:
    void Push(Who who, uint64_t ready) {
        queue_.emplace_back(who, queue_.empty() ? ready : std::max(ready, queue_.back().second));
    }

    // Gives all that are ready; `send(who)` says whether it was taken. Returns when to come again; SARDONYX_NEVER if
    // none waits, or if Unblock comes first.
    template <class Send> uint64_t Give(uint64_t now, Send send) {
        while (!blocked_ && !queue_.empty() && queue_.front().second <= now) {
            blocked_ = !send(queue_.front().first);
            if (!blocked_) queue_.pop_front();
        }
        return blocked_ || queue_.empty() ? SARDONYX_NEVER : queue_.front().second;
    }

    void Unblock() { blocked_ = false; }
    bool empty() const { return queue_.empty(); }
    bool blocked() const { return blocked_; }
    typename std::deque<std::pair<Who, uint64_t>>::iterator begin() { return queue_.begin(); }
    typename std::deque<std::pair<Who, uint64_t>>::iterator end() { return queue_.end(); }

  private:
    std::deque<std::pair<Who, uint64_t>> queue_;
    bool blocked_ = false;
};

} // namespace sardonyx

#endif
