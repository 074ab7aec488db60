// ChampSim with a memory of Sardonyx's: stands in for ChampSim's own src/dram_controller.cc. No other file of
// ChampSim's changes. docs/hosts/simulators.md says how it is built and what the SARDONYX_* variables are.
//
// ChampSim's memory controller has no interface: it takes requests from the queues of the channels above it, and
// puts answers into their `returned`. So does this one, with Sardonyx in between. It counts picoseconds as ChampSim
// does, and moves Sardonyx's clock with its own. ChampSim's traces have no bytes: host.contents draws them.
#include "dram_controller.h"

#include <sardonyx.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <fmt/core.h>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <unordered_map>

#include "util/bits.h"
#include "util/span.h"

namespace
{
using response_type = champsim::channel::response_type;

[[noreturn]] void fail(const std::string& where) { throw std::runtime_error("sardonyx: " + where + ": " + sardonyx_error()); }

std::string from_environment(const char* name, const char* otherwise)
{
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// A request that Sardonyx has taken: who above waits for which answer.
struct waiting {
  response_type response;
  std::deque<response_type>* to;
};

struct state {
  sardonyx_memory memory = 0;
  std::uint64_t tag = 0, reads = 0, writes = 0, answered = 0, refused = 0;
  std::unordered_map<std::uint64_t, waiting> open{};
  // The requests at the head of a queue that wait for room: tag, and since when.
  std::unordered_map<const void*, std::pair<std::uint64_t, std::uint64_t>> heads{};
  bool counts = false;

  state()
  {
    const auto machine = from_environment("SARDONYX_MACHINE", "ddr4-2400");
    const auto design = from_environment("SARDONYX_DESIGN", "no-encryption");
    std::istringstream words{from_environment("SARDONYX_SET", "host.contents=drawn:1000")};
    std::vector<std::string> settings{"addresses=wrapped"};
    for (std::string word; words >> word;)
      settings.push_back(word);
    std::vector<const char*> pointers;
    for (const auto& setting : settings)
      pointers.push_back(setting.c_str());
    memory = sardonyx_create(machine.c_str(), design.c_str(), pointers.data(), pointers.size());
    if (memory == 0)
      fail(machine + ", " + design);
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() { sardonyx_destroy(memory); }

  // Sends the request at the head of `queue`; false if Sardonyx takes none now.
  bool send(const champsim::channel::request_type& packet, bool is_write, std::uint64_t now, const void* queue, std::deque<response_type>* to)
  {
    auto [head, is_new] = heads.try_emplace(queue, tag, now);
    const auto [ours, since] = head->second;
    if (is_new) {
      tag++;
      note(SARDONYX_ASKED, ours, now);
    }
    sardonyx_request request{};
    request.address = packet.address.to<std::uint64_t>() & ~std::uint64_t{63};
    request.tag = ours;
    request.presented_ps = since; // its wait for room is part of its latency
    request.size = 64;
    request.kind = is_write ? SARDONYX_WRITE : SARDONYX_READ;
    const auto sent = sardonyx_send(memory, &request);
    if (sent < 0)
      fail("send");
    if (sent == 0) {
      refused++;
      return false;
    }
    heads.erase(head);
    (is_write ? writes : reads)++;
    open.emplace(request.tag, waiting{response_type{packet}, to});
    return true;
  }

  // Gives the answers that are there by `now` to whom they belong; how many.
  long take(std::uint64_t now)
  {
    if (sardonyx_advance_to(memory, now) < 0)
      fail("advance_to");
    sardonyx_answer answers[16];
    long all = 0;
    std::int64_t count = 0;
    do {
      count = sardonyx_answers(memory, answers, 16);
      if (count < 0)
        fail("answers");
      for (std::int64_t i = 0; i < count; i++) {
        auto found = open.find(answers[i].tag);
        if (found == open.end())
          throw std::runtime_error("sardonyx: an answer that nobody waits for");
        if (found->second.to != nullptr)
          found->second.to->push_back(found->second.response);
        open.erase(found);
        note(SARDONYX_DONE, answers[i].tag, now);
        answered++;
      }
      all += count;
    } while (count == 16);
    return all;
  }

  void note(std::uint32_t event, std::uint64_t which, std::uint64_t now) const
  {
    if (sardonyx_note(memory, SARDONYX_PORT, event, which, now, 64) < 0)
      fail("note");
  }
};

// The class has no room for what is ours, so it is found by the object.
std::unordered_map<const MEMORY_CONTROLLER*, std::unique_ptr<state>> table;

state& of(const MEMORY_CONTROLLER* controller)
{
  auto& place = table[controller];
  if (!place)
    place = std::make_unique<state>();
  return *place;
}

std::uint64_t picoseconds(champsim::chrono::clock::time_point time)
{
  return static_cast<std::uint64_t>(std::chrono::duration_cast<champsim::chrono::picoseconds>(time.time_since_epoch()).count());
}
} // namespace

MEMORY_CONTROLLER::MEMORY_CONTROLLER(champsim::chrono::picoseconds dbus_period, champsim::chrono::picoseconds mc_period, std::size_t, std::size_t, std::size_t,
                                     std::size_t, champsim::chrono::microseconds, std::vector<channel_type*>&& ul, std::size_t, std::size_t, std::size_t chans,
                                     champsim::data::bytes chan_width, std::size_t rows, std::size_t columns, std::size_t ranks, std::size_t bankgroups,
                                     std::size_t banks, std::size_t)
    : champsim::operable(mc_period), queues(std::move(ul)), channel_width(chan_width),
      address_mapping(chan_width, BLOCK_SIZE / chan_width.count(), chans, bankgroups, banks, columns, ranks, rows), data_bus_period(dbus_period)
{
  of(this); // `channels` stays empty: ChampSim would print counts that nobody has counted
}

DRAM_ADDRESS_MAPPING::DRAM_ADDRESS_MAPPING(champsim::data::bytes channel_width, std::size_t pref_size, std::size_t channels, std::size_t bankgroups,
                                           std::size_t banks, std::size_t columns, std::size_t ranks, std::size_t rows)
    : address_slicer(make_slicer(channel_width, pref_size, channels, bankgroups, banks, columns, ranks, rows)), prefetch_size(pref_size)
{
}

auto DRAM_ADDRESS_MAPPING::make_slicer(champsim::data::bytes channel_width, std::size_t pref_size, std::size_t channels, std::size_t bankgroups,
                                       std::size_t banks, std::size_t columns, std::size_t ranks, std::size_t rows) -> slicer_type
{
  const std::array<std::size_t, slicer_type::size()> params{channel_width.count() * pref_size, channels, bankgroups, banks, columns / pref_size, ranks, rows};
  return std::apply([](auto... p) { return champsim::make_contiguous_extent_set(0, champsim::lg2(p)...); }, params);
}

void MEMORY_CONTROLLER::initialize()
{
  fmt::print("Memory of Sardonyx: {}, {}, {} MiB\n", from_environment("SARDONYX_MACHINE", "ddr4-2400"), from_environment("SARDONYX_DESIGN", "no-encryption"),
             size().count() >> 20);
}

void MEMORY_CONTROLLER::initiate_requests()
{
  auto& ours = of(this);
  const auto now = picoseconds(current_time);
  for (auto* ul : queues) {
    for (auto* queue : {&ul->RQ, &ul->PQ, &ul->WQ}) {
      const bool is_write = queue == &ul->WQ;
      auto sends = [&](const auto& packet) {
        return ours.send(packet, is_write, now, queue, !is_write && packet.response_requested ? &ul->returned : nullptr);
      };
      auto [begin, end] = champsim::get_span_p(std::cbegin(*queue), std::cend(*queue), sends);
      queue->erase(begin, end);
    }
  }
}

// The warm-up is timed as everything else: the tables of a design have to be warm too.
long MEMORY_CONTROLLER::operate()
{
  auto& ours = of(this);
  const auto before = ours.reads + ours.writes;
  const long progress = ours.take(picoseconds(current_time));
  initiate_requests();
  // ChampSim takes 500 cycles without progress for a deadlock, which a slow medium needs for one line: while memory has
  // something to do it goes on.
  const bool goes_on = !ours.open.empty() && sardonyx_next_event(ours.memory) != SARDONYX_NEVER;
  return progress + static_cast<long>(ours.reads + ours.writes - before) + (goes_on ? 1 : 0);
}

void MEMORY_CONTROLLER::begin_phase()
{
  auto& ours = of(this);
  for (auto* ul : queues) {
    ul->roi_stats = {};
    ul->sim_stats = {};
  }
  ours.counts = !warmup;
  if (sardonyx_forget_figures(ours.memory) < 0)
    fail("forget_figures");
}

// The figures of the phase so far, when a core has finished it; the last core's stay.
void MEMORY_CONTROLLER::end_phase(unsigned)
{
  auto& ours = of(this);
  if (!ours.counts)
    return;
  const char* figures = sardonyx_figures(ours.memory);
  if (figures == nullptr)
    fail("figures");
  const auto path = from_environment("SARDONYX_OUT", "sardonyx.json");
  std::ofstream file{path};
  file << figures << "\n";
  if (!file.flush())
    throw std::runtime_error("sardonyx: " + path + ": cannot be written");
  fmt::print("Sardonyx: {} reads and {} writes taken, {} answered, {} times full; figures in {}\n", ours.reads, ours.writes, ours.answered, ours.refused, path);
}

void MEMORY_CONTROLLER::print_deadlock()
{
  const auto& ours = of(this);
  fmt::print("Sardonyx: {} requests have no answer; next event at {} ps, now {} ps\n", ours.open.size(), sardonyx_next_event(ours.memory),
             sardonyx_now(ours.memory));
}

champsim::data::bytes MEMORY_CONTROLLER::size() const { return champsim::data::bytes{static_cast<long long>(sardonyx_capacity(of(this).memory))}; }

// There are no DRAM_CHANNELs; their virtual functions have to be somewhere.
void DRAM_CHANNEL::initialize() {}
long DRAM_CHANNEL::operate() { return 0; }
void DRAM_CHANNEL::begin_phase() {}
void DRAM_CHANNEL::end_phase(unsigned) {}
void DRAM_CHANNEL::print_deadlock() {}
