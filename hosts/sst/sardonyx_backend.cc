// A backend of SST's memHierarchy with Sardonyx behind it: any machine and design, with the bytes of SST's events. A
// converter of our own hands them over, since memHierarchy's gives a backend addresses alone.
//
// A write is answered when it is in the persistence domain, and so is a flush: when the line's earlier writes are.
//
// Build, ELEMENTS being the folder of sst-elements' sources, SARDONYX that of this project after `make c-library`:
//   c++ -O2 -shared -fPIC $(sst-config --ELEMENT_CXXFLAGS) -I ELEMENTS/src -I SARDONYX/target/c/include sardonyx_backend.cc \
//     -L SARDONYX/target/c/lib -lsardonyx_c -Wl,-rpath,SARDONYX/target/c/lib \
//     -L $(sst-config SST_ELEMENT_LIBRARY SST_ELEMENT_LIBRARY_LIBDIR) -lmemHierarchy \
//     -Wl,-rpath,$(sst-config SST_ELEMENT_LIBRARY SST_ELEMENT_LIBRARY_LIBDIR) -o libsardonyx.so
// Register: sst-register sardonyx sardonyx_LIBDIR=$PWD. Use: backend = memctrl.setSubComponent("backend",
//   "sardonyx.backend"); backend.addParams({"machine": "esd", "design": "esd", "mem_size": "512MiB"})
#include <sst/core/sst_config.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sardonyx_coupling.hh>
#include <sst/elements/memHierarchy/membackend/memBackend.h>
#include <sst/elements/memHierarchy/membackend/simpleMemBackendConvertor.h>

namespace SST {
namespace MemHierarchy {

class SardonyxBackend : public SimpleMemBackend {
  public:
    SST_ELI_REGISTER_SUBCOMPONENT(SardonyxBackend, "sardonyx", "backend", SST_ELI_ELEMENT_VERSION(1, 0, 0),
                                  "A memory of Sardonyx's", SST::MemHierarchy::SimpleMemBackend)
    SST_ELI_DOCUMENT_PARAMS(MEMBACKEND_ELI_PARAMS,
                            {"machine", "a preset of Sardonyx's, or a machine file", "esd"},
                            {"design", "a design", "esd"},
                            {"settings", "KEY=VALUE, with spaces between", ""},
                            {"figures", "the file for the figures; empty: the name of this backend and .json", ""})

    SardonyxBackend(ComponentId_t id, Params &params) : SimpleMemBackend(id, params) {
        figures = params.find<std::string>("figures", "");
        picosecond = getTimeConverter("1 ps");
        wake = configureSelfLink("sardonyx_wake", "1 ps",
                                 new Event::Handler<SardonyxBackend, &SardonyxBackend::Woken>(this));
        std::vector<std::string> settings = sardonyx::Words(params.find<std::string>("settings", ""));
        const auto machine = params.find<std::string>("machine", "esd"), design = params.find<std::string>("design", "esd");
        Ok([&] {
            memory = std::make_unique<sardonyx::Coupling<Waiting>>(machine, design, settings);
            const uint64_t capacity = sardonyx_capacity(memory->handle());
            if (m_memSize > capacity)
                throw std::runtime_error("mem_size is " + std::to_string(m_memSize) + " and the machine has " +
                                         std::to_string(capacity) + " bytes");
        });
    }

    std::string getBackendConvertorType() override { return "sardonyx.converter"; }

    // Without the converter there is nobody who calls this.
    bool issueRequest(ReqId, Addr, bool, unsigned) override { return false; }

    bool Present(ReqId id, Addr address, bool is_write, unsigned size, const uint8_t *bytes) {
        if (full) return false; // memHierarchy asks again each cycle, and the answer changes by an event alone
        bool taken = false;
        Ok([&] {
            Advance();
            taken = memory->Present({id, nullptr}, {address, size, is_write, 0, bytes, 0}, Now());
            full = !taken;
            Sleep();
        });
        return taken;
    }

    // `done` is called when the line's writes so far are in the persistence domain. This is called while memHierarchy
    // issues the line's write, which it counts afterwards: an answer to that write would come too early for it, so
    // answers that are there wait for an event.
    void Flush(Addr address, unsigned size, std::function<void()> done) {
        Ok([&] {
            memory->Advance(Now(), [this](Waiting answered) { late.push_back(answered); });
            memory->Clean({0, new std::function<void()>(std::move(done))}, address, size, 0, false);
            Sleep();
        });
    }

    // Memory's time is the simulation's, whatever clock the controller has: answers come by events of their own.
    bool isClocked() override { return false; }

    void finish() override {
        Ok([&] { memory->WriteFigures(figures.empty() ? getName() + ".json" : figures); });
    }

    void serialize_order(SST::Core::Serialization::serializer &) override {
        getSimulationOutput().fatal(CALL_INFO, 1, "sardonyx: a checkpoint cannot hold this memory; run without "
                                                  "--checkpoint-sim-period and --checkpoint-wall-period\n");
    }
    ImplementSerializable(SST::MemHierarchy::SardonyxBackend)

    SardonyxBackend() {}

  private:
    // A request of the converter's, or who waits for a flush.
    struct Waiting {
        ReqId id;
        std::function<void()> *flushed;
    };

    void Advance() {
        memory->Advance(Now(), [this](Waiting done) { Answer(done); });
    }

    void Answer(Waiting done) {
        if (!done.flushed) return handleMemResponse(done.id);
        std::unique_ptr<std::function<void()>> flushed(done.flushed);
        (*flushed)();
    }

    void Woken(Event *event) {
        delete event;
        if (Now() != woken) return; // an earlier event took this one's place, or one of the same time has come
        woken = SARDONYX_NEVER;
        full = false;
        Ok([&] {
            for (Waiting done : std::exchange(late, {})) Answer(done);
            Advance();
            Sleep();
        });
    }

    // Comes again when memory next does something of itself.
    void Sleep() {
        const uint64_t now = Now(), next = late.empty() ? memory->Next(true) : now;
        if (next == SARDONYX_NEVER || (woken > now && woken <= next)) return;
        woken = std::max(next, now + 1);
        wake->send(woken - now, nullptr);
    }

    uint64_t Now() { return getCurrentSimTime(picosecond); }

    template <class Call> void Ok(Call call) {
        try {
            call();
        } catch (const std::runtime_error &error) {
            getSimulationOutput().fatal(CALL_INFO, 1, "%s: %s\n", getName().c_str(), error.what());
        }
    }

    std::unique_ptr<sardonyx::Coupling<Waiting>> memory;
    std::vector<Waiting> late;
    std::string figures;
    TimeConverter picosecond;
    Link *wake = nullptr;
    bool full = false; // a request was refused, and nothing has happened since
    uint64_t woken = SARDONYX_NEVER;
};

// Hands events over with their bytes: a write's own, be they a line or a part of one.
class SardonyxConvertor : public SimpleMemBackendConvertor {
  public:
    SST_ELI_REGISTER_SUBCOMPONENT(SardonyxConvertor, "sardonyx", "converter", SST_ELI_ELEMENT_VERSION(1, 0, 0),
                                  "Hands events and their bytes to sardonyx.backend",
                                  SST::MemHierarchy::SimpleMemBackendConvertor)
    SST_ELI_DOCUMENT_PARAMS(MEMBACKENDCONVERTOR_ELI_PARAMS)
    SST_ELI_DOCUMENT_STATISTICS(MEMBACKENDCONVERTOR_ELI_STATS)

    SardonyxConvertor(ComponentId_t id, Params &params, MemBackend *backend, uint32_t width)
        : SimpleMemBackendConvertor(id, params, backend, width) {}

    bool issue(BaseReq *base) override {
        if (!base->isMemEv()) return SimpleMemBackendConvertor::issue(base);
        auto *request = static_cast<MemReq *>(base);
        MemEvent *event = request->getMemEvent();
        const unsigned done = request->processed();
        if (!request->isWrite())
            return Backend()->Present(request->id(), request->addr(), false, m_backendRequestWidth, nullptr);
        const unsigned left = event->getSize() - done, size = std::min(m_backendRequestWidth, left);
        const bool taken =
            Backend()->Present(request->id(), event->getAddr() + done, true, size, event->getPayload().data() + done);
        if (taken && size == left) Issued(event->getBaseAddr());
        return taken;
    }

    // memHierarchy's own answers a flush when the writes that it has not issued are done; here those that it has issued
    // count too.
    void handleMemEvent(MemEvent *event) override {
        const Addr line = event->getBaseAddr();
        const auto command = event->getCmd();
        if (command == Command::FlushLine || command == Command::FlushLineInv) {
            const auto found = queued.find(line);
            if (found == queued.end()) return Forward(event);
            found->second.flushes.push_back(event);
            return;
        }
        if (command == Command::PutM || command == Command::Write) queued[line].writes++;
        SimpleMemBackendConvertor::handleMemEvent(event);
    }

    SardonyxConvertor() {}
    ImplementSerializable(SST::MemHierarchy::SardonyxConvertor)

  private:
    SardonyxBackend *Backend() { return static_cast<SardonyxBackend *>(m_backend); }

    void Forward(MemEvent *flush) {
        Backend()->Flush(flush->getBaseAddr(), std::max(flush->getSize(), 1u), [this, flush] { SimpleMemBackendConvertor::handleMemEvent(flush); });
    }

    // A line's last write of those that waited here has gone to memory, and with it go the flushes.
    void Issued(Addr line) {
        const auto found = queued.find(line);
        if (--found->second.writes) return;
        const std::vector<MemEvent *> flushes = std::move(found->second.flushes);
        queued.erase(found);
        for (MemEvent *flush : flushes) Forward(flush);
    }

    // Writes of a line that memory has not, and the flushes that wait for them.
    struct Queued {
        unsigned writes = 0;
        std::vector<MemEvent *> flushes;
    };
    std::unordered_map<Addr, Queued> queued;
};

}  // namespace MemHierarchy
}  // namespace SST
