// gem5's memory as Sardonyx's library has it: the declarations. See sardonyx_memory.cc.
#ifndef SARDONYX_MEMORY_HH
#define SARDONYX_MEMORY_HH

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#include <sardonyx.h>

#include "mem/abstract_mem.hh"
#include "mem/port.hh"
#include "params/SardonyxMemory.hh"

namespace gem5
{
namespace memory
{

class SardonyxMemory : public AbstractMemory
{
  public:
    SardonyxMemory(const SardonyxMemoryParams &p);
    ~SardonyxMemory() override;

    void init() override;
    void startup() override;
    DrainState drain() override;
    Port &getPort(const std::string &name, PortID idx = InvalidPortID) override;

  private:
    class MemoryPort : public ResponsePort
    {
      public:
        MemoryPort(const std::string &name, SardonyxMemory &memory);

      protected:
        Tick recvAtomic(PacketPtr pkt) override;
        void recvFunctional(PacketPtr pkt) override;
        bool recvTimingReq(PacketPtr pkt) override;
        void recvRespRetry() override;
        AddrRangeList getAddrRanges() const override;

      private:
        SardonyxMemory &memory;
    };

    Tick atomic(PacketPtr pkt);
    void functional(PacketPtr pkt);
    bool timing(PacketPtr pkt);
    bool send(PacketPtr pkt, uint64_t tag);
    void load();
    void happen();
    void wake();
    void respond(PacketPtr pkt);
    void sendResponses();
    void writeFigures();
    int64_t ok(int64_t result, const char *what) const;
    uint64_t now() const;

    MemoryPort port;
    sardonyx_memory handle = 0;
    std::string figures;
    uint64_t tags = 0;
    /// Taken by Sardonyx, and without an answer.
    std::unordered_map<uint64_t, PacketPtr> open;
    std::deque<PacketPtr> responses;
    bool retryRequest = false, retryResponse = false;
    /// The refused request's tag and time: its wait is part of its latency.
    uint64_t refusedTag = 0, refusedSince = 0;
    std::unique_ptr<Packet> pendingDelete;
    EventFunctionWrapper happenEvent, responseEvent;
};

} // namespace memory
} // namespace gem5

#endif
