// gem5's memory as Sardonyx's library has it. Bytes come with packets: what a write carries is encrypted,
// fingerprinted and stored. gem5's own backing store has the same bytes from the moment a packet is taken, for
// functional accesses and checkpoints; the library holds each read to them.
//
// A clwb comes as a clean request, and as a WriteClean of the same packet id from the cache that has the line dirty; the
// order of the two is open. The clean is answered when both are here and the line's writes are in the persistence
// domain; an sfence waits for that answer in the core. A crossbar that is the point of coherency answers the clean by
// itself, too early: with such a crossbar this memory does not start, unless it is told that nothing here sends a clwb.
#include "sardonyx_memory.hh"

#include <cmath>
#include <cstdlib>

#include "base/output.hh"
#include "debug/Sardonyx.hh"
#include "sim/core.hh"
#include "sim/system.hh"

namespace gem5
{
namespace memory
{

namespace
{

constexpr size_t Block = 4096;
constexpr const char *HowToClean =
    "set its point_of_coherency = False, or this memory's cleans = False if nothing here sends a clwb";

} // namespace

SardonyxMemory::SardonyxMemory(const SardonyxMemoryParams &p)
    : AbstractMemory(p), port(name() + ".port", *this), params(p), happenEvent([this] { happen(); }, name() + ".happen"),
      responseEvent([this] { sendResponses(); }, name() + ".respond"), figures(this, "sardonyx")
{
    fatal_if(p.null, "%s: null = True has no bytes, which Sardonyx needs", name());
    ok([&] { memory.reset(new sardonyx::Coupling<Waiting>(p.machine, p.design, p.settings)); });
    fatal_if(range.size() > sardonyx_capacity(memory->handle()), "%s: the range has %d bytes and the machine %d", name(),
             range.size(), sardonyx_capacity(memory->handle()));
    readFigures();
    registerExitCallback([this] { writeFigures(); });
}

template <class Call>
void
SardonyxMemory::ok(Call call) const
{
    try {
        call();
    } catch (const std::runtime_error &error) {
        fatal("%s: %s", name(), error.what());
    }
}

uint64_t
SardonyxMemory::now() const
{
    return curTick() / sim_clock::as_int::ps - began;
}

// An address as Sardonyx has it: of an interleaved range, its own bytes without holes.
Addr
SardonyxMemory::place(Addr address) const
{
    return range.getOffset(address);
}

void
SardonyxMemory::init()
{
    AbstractMemory::init();
    fatal_if(!port.isConnected(), "%s: nothing is connected", name());
    port.sendRangeChange();
}

void
SardonyxMemory::startup()
{
    eachBlock(&SardonyxMemory::loadBlock);
}

void
SardonyxMemory::eachBlock(void (SardonyxMemory::*act)(Addr, uint8_t *, size_t))
{
    const Addr step = range.interleaved() ? std::min<Addr>(Block, range.granularity()) : Block;
    for (Addr at = range.start(); at < range.end(); at += step) {
        if (range.contains(at))
            (this->*act)(place(at), toHostAddr(at), std::min<Addr>(step, range.end() - at));
    }
}

// What a loader or a checkpoint has put into gem5's store, but for zeros.
void
SardonyxMemory::loadBlock(Addr offset, uint8_t *bytes, size_t size)
{
    static const uint8_t zeros[Block] = {};
    if (!std::equal(bytes, bytes + size, zeros))
        ok([&] { memory->Load(offset, bytes, size); });
}

void
SardonyxMemory::storeBlock(Addr offset, uint8_t *bytes, size_t size)
{
    ok([&] { memory->Look(offset, bytes, size); });
}

// What gem5's store has at an address goes to Sardonyx in no time.
void
SardonyxMemory::stored(Addr address, size_t size)
{
    ok([&] { memory->Load(place(address), toHostAddr(address), size); });
}

// No time passes in Sardonyx in atomic mode: what is written is there, as a loader's.
Tick
SardonyxMemory::atomic(PacketPtr pkt)
{
    if (pkt->cacheResponding())
        return 0;
    const bool isWrite = pkt->isWrite() && !pkt->isCleanEviction();
    const Addr address = pkt->getAddr();
    const size_t size = pkt->getSize();
    access(pkt);
    if (isWrite)
        stored(address, size);
    return params.atomic_latency;
}

// A read sees what was taken last. A write also changes the data of reads that are on their way back.
void
SardonyxMemory::functional(PacketPtr pkt)
{
    const bool isWrite = pkt->isWrite();
    const Addr address = pkt->getAddr();
    const size_t size = pkt->getSize();
    pkt->pushLabel(name());
    functionalAccess(pkt);
    if (isWrite) {
        stored(address, size);
        memory->Each([pkt](Waiting waiting) {
            if (waiting.pkt)
                pkt->trySatisfyFunctional(waiting.pkt);
        });
        for (auto &response : responses)
            pkt->trySatisfyFunctional(response.first);
    }
    pkt->popLabel();
}

uint32_t
SardonyxMemory::flags(const Packet &pkt) const
{
    for (const AddrRange &atomic : params.counter_atomic)
        if (atomic.contains(pkt.getAddr()))
            return SARDONYX_COUNTER_ATOMIC;
    return pkt.cmd == MemCmd::WriteClean ? SARDONYX_PERSIST : 0;
}

// Gives a read or a write to Sardonyx; false if it takes none now. gem5's store has a write's bytes from here on.
bool
SardonyxMemory::present(PacketPtr pkt)
{
    const Addr address = pkt->getAddr();
    const bool isWrite = pkt->isWrite(), isCleaned = isWrite && pkt->cmd == MemCmd::WriteClean && params.cleans;
    fatal_if(isCleaned && pkt->req->isToPOC() && !pkt->writeThrough(),
             "%s: a crossbar above has answered a clwb before its line is persistent; %s", name(), HowToClean);
    sardonyx::Access request{place(address), pkt->getSize(), isWrite, isWrite ? flags(*pkt) : 0, nullptr,
                             isCleaned ? pkt->id : 0};
    Waiting waiting{pkt->needsResponse() ? pkt : nullptr, pkt->headerDelay + pkt->payloadDelay};
    if (memory->Accepts()) {
        access(pkt); // makes it a response
        request.bytes = isWrite ? toHostAddr(address) : nullptr;
        pkt->headerDelay = pkt->payloadDelay = 0;
    }
    bool taken = false;
    ok([&] { taken = memory->Present(waiting, request, now()); });
    if (taken && !waiting.pkt)
        pendingDelete.reset(pkt);
    return taken;
}

bool
SardonyxMemory::timing(PacketPtr pkt)
{
    fatal_if(off, "%s: the power is off; call recover() first", name());
    if (pkt->cacheResponding() || pkt->isCleanEviction()) {
        pendingDelete.reset(pkt);
        return true;
    }
    advance();
    if (pkt->req->isCacheClean() && !pkt->hasData()) {
        const Waiting waiting{pkt, pkt->headerDelay + pkt->payloadDelay};
        ok([&] { memory->Clean(waiting, place(pkt->getAddr()), pkt->getSize(), pkt->id, params.cleans && pkt->satisfied()); });
        access(pkt);
        pkt->headerDelay = pkt->payloadDelay = 0;
    } else if (!pkt->isRead() && !pkt->isWrite()) { // an upgrade, an invalidation: no bytes move
        const bool needsResponse = pkt->needsResponse();
        const Tick delay = pkt->headerDelay + pkt->payloadDelay;
        pkt->headerDelay = pkt->payloadDelay = 0;
        access(pkt);
        if (needsResponse)
            respond(pkt, curTick() + delay);
        else
            pendingDelete.reset(pkt);
    } else if (!present(pkt)) {
        retryOwed = true;
        wake();
        return false;
    }
    wake();
    return true;
}

void
SardonyxMemory::advance()
{
    ok([this] {
        memory->Advance(now(), [this](Waiting done) {
            if (done.pkt)
                respond(done.pkt, curTick() + done.delay);
        });
    });
}

// Comes again when Sardonyx next does something of itself.
void
SardonyxMemory::wake()
{
    uint64_t next = SARDONYX_NEVER;
    ok([&] { next = memory->Next(retryOwed); });
    if (next == SARDONYX_NEVER)
        return;
    reschedule(happenEvent, std::max(curTick() + 1, Tick((next + began) * sim_clock::as_int::ps)), true);
}

void
SardonyxMemory::happen()
{
    if (off)
        return;
    advance();
    if (retryOwed && memory->Accepts()) {
        retryOwed = false; // one retry for one refusal; it may be refused again in this call
        port.sendRetryReq();
    }
    ended();
    wake();
}

void
SardonyxMemory::respond(PacketPtr pkt, Tick at)
{
    responses.Push(pkt, at);
    if (!responses.blocked() && !responseEvent.scheduled())
        schedule(responseEvent, std::max(at, curTick()));
}

void
SardonyxMemory::sendResponses()
{
    const uint64_t next = responses.Give(curTick(), [this](PacketPtr pkt) { return port.sendTimingResp(pkt); });
    if (next != SARDONYX_NEVER && !responseEvent.scheduled())
        schedule(responseEvent, next);
    ended();
}

void
SardonyxMemory::ended()
{
    if (drainState() == DrainState::Draining && memory->Open() == 0 && responses.empty())
        signalDrainDone();
}

DrainState
SardonyxMemory::drain()
{
    return memory->Open() == 0 && responses.empty() ? DrainState::Drained : DrainState::Draining;
}

// What waits for an answer gets one, so that gem5 can be drained; what the caches hold is gone in a real machine.
void
SardonyxMemory::powerCut(const std::string &platform, uint64_t seed)
{
    advance();
    ok([&] { memory->Ok(sardonyx_power_cut(memory->handle(), platform.c_str(), seed), "power_cut"); });
    off = true;
    for (Waiting waiting : memory->Abandon()) {
        if (waiting.pkt)
            respond(waiting.pkt, curTick() + 1);
    }
}

std::pair<uint64_t, uint64_t>
SardonyxMemory::recover()
{
    std::pair<uint64_t, uint64_t> lines{};
    ok([&] { memory->Ok(sardonyx_recover(memory->handle(), &lines.first, &lines.second), "recover"); });
    off = false;
    began = curTick() / sim_clock::as_int::ps;
    eachBlock(&SardonyxMemory::storeBlock);
    return lines;
}

// The figures as gem5's statistics, each of the name that it has in the JSON's "metrics". The speed of this computer is
// not one of them: the same run gives the same statistics.
void
SardonyxMemory::readFigures()
{
    const char *text = sardonyx_figures(memory->handle());
    fatal_if(!text, "%s: figures: %s", name(), sardonyx_error());
    const std::string all(text);
    const std::string head = "\"metrics\":{";
    size_t at = all.find(head);
    panic_if(at == std::string::npos, "%s: figures without metrics", name());
    at += head.size();
    for (size_t index = 0; all[at] == '"';) {
        const size_t end = all.find('"', at + 1);
        const std::string figure = all.substr(at + 1, end - at - 1);
        const char *value = all.c_str() + end + 2;
        at = all.find_first_of(",}", end) + 1;
        if (figure != "requests_per_second") {
            if (index == scalars.size())
                scalars.emplace_back(figure,
                                     new statistics::Scalar(&figures, figure.c_str(), "Sardonyx's metric of that name"));
            panic_if(scalars[index].first != figure, "%s: other metrics than before: %s", name(), figure);
            *scalars[index++].second = *value == 'n' ? std::nan("") : std::strtod(value, nullptr);
        }
        if (all[at - 1] == '}')
            break;
    }
}

void
SardonyxMemory::preDumpStats()
{
    AbstractMemory::preDumpStats();
    readFigures();
}

void
SardonyxMemory::resetStats()
{
    AbstractMemory::resetStats();
    ok([this] { memory->Ok(sardonyx_forget_figures(memory->handle()), "resetStats"); });
}

void
SardonyxMemory::writeFigures()
{
    const std::string file = params.figures.empty() ? name() + ".json" : params.figures;
    ok([&] { memory->WriteFigures(simout.resolve(file)); });
}

Port &
SardonyxMemory::getPort(const std::string &name, PortID idx)
{
    return name == "port" ? static_cast<Port &>(port) : AbstractMemory::getPort(name, idx);
}

SardonyxMemory::MemoryPort::MemoryPort(const std::string &name, SardonyxMemory &memory)
    : ResponsePort(name), memory(memory)
{}

AddrRangeList
SardonyxMemory::MemoryPort::getAddrRanges() const
{
    return {memory.getAddrRange()};
}

Tick SardonyxMemory::MemoryPort::recvAtomic(PacketPtr pkt) { return memory.atomic(pkt); }

void SardonyxMemory::MemoryPort::recvFunctional(PacketPtr pkt) { memory.functional(pkt); }

bool SardonyxMemory::MemoryPort::recvTimingReq(PacketPtr pkt) { return memory.timing(pkt); }

void
SardonyxMemory::MemoryPort::recvRespRetry()
{
    memory.responses.Unblock();
    memory.sendResponses();
}

} // namespace memory
} // namespace gem5
