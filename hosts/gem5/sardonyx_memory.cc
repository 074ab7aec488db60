// gem5's memory as Sardonyx's library has it. Bytes come with packets: what a write carries is encrypted,
// fingerprinted and stored, and a read brings what the design has read. gem5's own backing store has the same
// bytes, for functional accesses and checkpoints.
//
// clwb: the caches send the line as WriteClean, which persists, and the request itself (CleanSharedReq) comes here
// and is answered when the line's writes are in the persistence domain. An sfence waits for that answer in the core.
#include "sardonyx_memory.hh"

#include <algorithm>
#include <fstream>

#include "base/callback.hh"
#include "base/output.hh"
#include "base/trace.hh"
#include "debug/Sardonyx.hh"
#include "sim/core.hh"
#include "sim/system.hh"

namespace gem5
{
namespace memory
{

SardonyxMemory::SardonyxMemory(const SardonyxMemoryParams &p)
    : AbstractMemory(p), port(name() + ".port", *this), figures(p.figures),
      happenEvent([this] { happen(); }, name() + ".happen"),
      responseEvent([this] { sendResponses(); }, name() + ".respond")
{
    std::vector<const char *> settings;
    for (const auto &setting : p.settings)
        settings.push_back(setting.c_str());
    handle = sardonyx_create(p.machine.c_str(), p.design.c_str(), settings.data(), settings.size());
    fatal_if(!handle, "%s: %s", name(), sardonyx_error());
    fatal_if(range.size() > sardonyx_capacity(handle), "%s: the range has %d bytes and the machine %d", name(),
             range.size(), sardonyx_capacity(handle));
    registerExitCallback([this] { writeFigures(); });
}

SardonyxMemory::~SardonyxMemory() { sardonyx_destroy(handle); }

int64_t
SardonyxMemory::ok(int64_t result, const char *what) const
{
    fatal_if(result == SARDONYX_FAILED, "%s: %s: %s", name(), what, sardonyx_error());
    return result;
}

uint64_t
SardonyxMemory::now() const
{
    return curTick() / sim_clock::as_int::ps;
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
    load();
}

/// What a loader or a checkpoint has put into gem5's backing store: pages that are not zero.
void
SardonyxMemory::load()
{
    static const uint8_t zeros[4096] = {};
    const uint8_t *bytes = pmemAddr;
    for (uint64_t at = 0; bytes && at < range.size(); at += sizeof zeros) {
        const size_t size = std::min<uint64_t>(sizeof zeros, range.size() - at);
        if (!std::equal(bytes + at, bytes + at + size, zeros))
            ok(sardonyx_functional_write(handle, 0, at, bytes + at, size), "load");
    }
}

Tick
SardonyxMemory::atomic(PacketPtr pkt)
{
    // No time passes in Sardonyx in atomic mode: what is written is there, as a loader's.
    panic_if(pkt->cacheResponding(), "a cache responds to what came to memory");
    functional(pkt);
    return 50 * sim_clock::as_int::ns;
}

void
SardonyxMemory::functional(PacketPtr pkt)
{
    const bool isWrite = pkt->isWrite() && pkt->hasData();
    const Addr address = pkt->getAddr() - range.start();
    access(pkt);
    if (isWrite)
        ok(sardonyx_functional_write(handle, 0, address, toHostAddr(pkt->getAddr()), pkt->getSize()), "write");
}

bool
SardonyxMemory::send(PacketPtr pkt, uint64_t tag)
{
    const Addr address = pkt->getAddr() - range.start();
    if (pkt->req->isCacheClean() && !pkt->hasData()) { // clwb itself
        ok(sardonyx_flush(handle, address, 0, tag), "flush");
        return true;
    }
    uint8_t after[64];
    sardonyx_request request{};
    request.address = address;
    request.tag = tag;
    request.presented_ps = tag == refusedTag && retryRequest ? refusedSince : now();
    request.size = pkt->getSize();
    request.kind = pkt->isWrite() ? SARDONYX_WRITE : SARDONYX_READ;
    if (pkt->isWrite()) {
        fatal_if(pkt->getSize() > sizeof after, "%s: a packet of %d bytes", name(), pkt->getSize());
        // A masked write's other bytes, and an atomic operation's result, are in the backing store.
        std::copy_n(toHostAddr(pkt->getAddr()), pkt->getSize(), after);
        if (!pkt->isAtomicOp())
            pkt->writeData(after);
        request.bytes = after;
        request.flags = pkt->cmd == MemCmd::WriteClean ? SARDONYX_PERSIST : 0;
    }
    return ok(sardonyx_send(handle, &request), "send") == 1;
}

bool
SardonyxMemory::timing(PacketPtr pkt)
{
    if (pkt->cacheResponding()) {
        pendingDelete.reset(pkt);
        return true;
    }
    const bool isOurs = pkt->isRead() || pkt->isWrite() || pkt->req->isCacheClean();
    if (!isOurs) { // an upgrade, an invalidation: no bytes move
        respond(pkt);
        return true;
    }
    ok(sardonyx_advance_to(handle, now()), "advance");
    const uint64_t tag = retryRequest ? refusedTag : ++tags;
    if (!retryRequest)
        ok(sardonyx_note(handle, SARDONYX_PORT, SARDONYX_ASKED, tag, now(), pkt->getSize()), "note");
    if (!send(pkt, tag)) {
        if (!retryRequest)
            refusedSince = now();
        refusedTag = tag;
        retryRequest = true;
        wake();
        return false;
    }
    retryRequest = false;
    open.emplace(tag, pkt);
    wake();
    return true;
}

/// The next event that Sardonyx has of itself.
void
SardonyxMemory::wake()
{
    uint64_t next = sardonyx_next_event(handle);
    if (next == SARDONYX_NEVER && (retryRequest || !open.empty())) {
        ok(sardonyx_idle(handle, 0), "idle"); // queued writes go
        next = sardonyx_next_event(handle);
    }
    if (next == SARDONYX_NEVER)
        return;
    const Tick at = std::max(curTick() + 1, Tick(next * sim_clock::as_int::ps));
    if (!happenEvent.scheduled())
        schedule(happenEvent, at);
    else if (happenEvent.when() > at)
        reschedule(happenEvent, at);
}

void
SardonyxMemory::happen()
{
    ok(sardonyx_advance_to(handle, now()), "advance");
    sardonyx_answer answers[16];
    int64_t count;
    do {
        count = ok(sardonyx_answers(handle, answers, 16), "answers");
        for (int64_t i = 0; i < count; i++) {
            auto found = open.find(answers[i].tag);
            panic_if(found == open.end(), "%s: an answer that nobody waits for", name());
            PacketPtr pkt = found->second;
            open.erase(found);
            ok(sardonyx_note(handle, SARDONYX_PORT, SARDONYX_DONE, answers[i].tag, now(), pkt->getSize()), "note");
            respond(pkt);
        }
    } while (count == 16);
    if (retryRequest && ok(sardonyx_accepts(handle), "accepts"))
        port.sendRetryReq();
    if (open.empty())
        signalDrainDone();
    wake();
}

void
SardonyxMemory::respond(PacketPtr pkt)
{
    const bool needsResponse = pkt->needsResponse();
    access(pkt); // bytes to and from the backing store; makes it a response
    if (!needsResponse) {
        pendingDelete.reset(pkt);
        return;
    }
    const Tick at = curTick() + pkt->headerDelay + pkt->payloadDelay;
    pkt->headerDelay = pkt->payloadDelay = 0;
    responses.push_back(pkt);
    if (!retryResponse && !responseEvent.scheduled())
        schedule(responseEvent, at);
}

void
SardonyxMemory::sendResponses()
{
    while (!responses.empty()) {
        if (!port.sendTimingResp(responses.front())) {
            retryResponse = true;
            return;
        }
        responses.pop_front();
    }
    if (open.empty())
        signalDrainDone();
}

DrainState
SardonyxMemory::drain()
{
    return open.empty() && responses.empty() ? DrainState::Drained : DrainState::Draining;
}

void
SardonyxMemory::writeFigures()
{
    if (const char *text = sardonyx_figures(handle)) {
        OutputStream *file = simout.create(figures, false, true);
        *file->stream() << text << "\n";
        simout.close(file);
    }
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

void
SardonyxMemory::MemoryPort::recvFunctional(PacketPtr pkt)
{
    pkt->pushLabel(memory.name());
    memory.functionalAccess(pkt);
    if (pkt->isWrite())
        memory.ok(sardonyx_functional_write(memory.handle, 0, pkt->getAddr() - memory.getAddrRange().start(),
                                            memory.toHostAddr(pkt->getAddr()), pkt->getSize()), "write");
    pkt->popLabel();
}

bool SardonyxMemory::MemoryPort::recvTimingReq(PacketPtr pkt) { return memory.timing(pkt); }

void
SardonyxMemory::MemoryPort::recvRespRetry()
{
    memory.retryResponse = false;
    memory.sendResponses();
}

} // namespace memory
} // namespace gem5
