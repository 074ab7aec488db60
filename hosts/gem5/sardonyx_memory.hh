// gem5's memory as Sardonyx's library has it: the declarations. See sardonyx_memory.cc.
#ifndef SARDONYX_MEMORY_HH
#define SARDONYX_MEMORY_HH

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sardonyx_coupling.hh>

#include "base/statistics.hh"
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

    void init() override;
    void startup() override;
    DrainState drain() override;
    Port &getPort(const std::string &name, PortID idx = InvalidPortID) override;
    void preDumpStats() override;
    void resetStats() override;

    // For the configuration script, between two calls of m5.simulate (SardonyxMemory.py).
    void powerCut(const std::string &platform, uint64_t seed);
    std::pair<uint64_t, uint64_t> recover();

  private:
    class MemoryPort : public ResponsePort
    {
      public:
        MemoryPort(const std::string &name, SardonyxMemory &memory);

      protected:
        Tick recvAtomic(PacketPtr pkt) override;
        void recvFunctional(PacketPtr pkt) override;
        bool recvTimingReq(PacketPtr pkt) override;
        bool tryTiming(PacketPtr) override { return true; }
        void recvRespRetry() override;
        AddrRangeList getAddrRanges() const override;

      private:
        SardonyxMemory &memory;
    };

    // Who waits for an answer, and how long it was on its way here; nobody waits for a write-back's.
    struct Waiting
    {
        PacketPtr pkt;
        Tick delay;
    };

    void eachBlock(void (SardonyxMemory::*act)(Addr offset, uint8_t *bytes, size_t size));
    void loadBlock(Addr offset, uint8_t *bytes, size_t size);
    void storeBlock(Addr offset, uint8_t *bytes, size_t size);
    Tick atomic(PacketPtr pkt);
    void functional(PacketPtr pkt);
    void stored(Addr address, size_t size);
    bool timing(PacketPtr pkt);
    bool present(PacketPtr pkt);
    uint32_t flags(const Packet &pkt) const;
    void advance();
    void happen();
    void wake();
    void respond(PacketPtr pkt, Tick at);
    void sendResponses();
    void ended();
    void readFigures();
    void writeFigures();
    Addr place(Addr address) const;
    uint64_t now() const;
    template <class Call> void ok(Call call) const;

    MemoryPort port;
    const SardonyxMemoryParams &params;
    std::unique_ptr<sardonyx::Coupling<Waiting>> memory;
    sardonyx::Answers<PacketPtr> responses;
    // A sender was refused and has not been told to try again.
    bool retryOwed = false;
    bool off = false;
    // gem5's time at which Sardonyx's clock began, in ps.
    uint64_t began = 0;
    std::unique_ptr<Packet> pendingDelete;
    EventFunctionWrapper happenEvent, responseEvent;
    statistics::Group figures;
    std::vector<std::pair<std::string, std::unique_ptr<statistics::Scalar>>> scalars;
};

} // namespace memory
} // namespace gem5

#endif
