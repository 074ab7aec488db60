// A backend of SST's memHierarchy with Sardonyx behind it. memHierarchy keeps the bytes in a Backing of its own and
// gives a simple backend none, so contents come from host.contents (docs/hosts/simulators.md).
//
// Build: c++ -shared -fPIC $(sst-config --ELEMENT_CXXFLAGS) -I SARDONYX/target/c/include sardonyx_backend.cc
//   -L SARDONYX/target/c/lib -lsardonyx_c -Wl,-rpath,SARDONYX/target/c/lib -o libsardonyx.so
// Register: sst-register sardonyx sardonyx_LIBDIR=$PWD. Use: backend = memctrl.setSubComponent("backend",
//   "sardonyx.backend"); backend.addParams({"machine": "esd", "design": "esd", "settings": "host.contents=drawn:1000"})
#include <sst_config.h>

#include <sstream>
#include <string>
#include <vector>

#include <sardonyx.h>
#include <sst/elements/memHierarchy/membackend/memBackend.h>

namespace SST {
namespace MemHierarchy {

class SardonyxBackend : public SimpleMemBackend {
  public:
    SST_ELI_REGISTER_SUBCOMPONENT(SardonyxBackend, "sardonyx", "backend", SST_ELI_ELEMENT_VERSION(1, 0, 0),
                                  "A memory of Sardonyx's", SST::MemHierarchy::SimpleMemBackend)
    SST_ELI_DOCUMENT_PARAMS(MEMBACKEND_ELI_PARAMS,
                            {"machine", "a preset of Sardonyx's, or a machine file", "esd"},
                            {"design", "a design", "esd"},
                            {"settings", "KEY=VALUE, with spaces between", "host.contents=drawn:1000"},
                            {"figures", "the file for the figures", "sardonyx.json"})

    SardonyxBackend(ComponentId_t id, Params &params) : SimpleMemBackend(id, params) {
        const auto machine = params.find<std::string>("machine", "esd"), design = params.find<std::string>("design", "esd");
        figures = params.find<std::string>("figures", "sardonyx.json");
        std::istringstream words{params.find<std::string>("settings", "host.contents=drawn:1000")};
        std::vector<std::string> settings{"host.addresses=wrap"};
        for (std::string word; words >> word;) settings.push_back(word);
        std::vector<const char *> pointers;
        for (const auto &setting : settings) pointers.push_back(setting.c_str());
        memory = sardonyx_create(machine.c_str(), design.c_str(), pointers.data(), pointers.size());
        if (!memory) Fail("create");
    }

    ~SardonyxBackend() override { sardonyx_destroy(memory); }

    bool issueRequest(ReqId id, Addr address, bool is_write, unsigned bytes) override {
        sardonyx_request request{};
        request.address = address & ~Addr{63};
        request.tag = id;
        request.presented_ps = SARDONYX_NOW;
        request.size = 64;
        request.kind = is_write ? SARDONYX_WRITE : SARDONYX_READ;
        if (bytes > 64) Fail("a request of more than a line; set the controller's request_width to 64");
        const auto sent = sardonyx_send(memory, &request);
        if (sent < 0) Fail("send");
        if (sent == 1) Note(SARDONYX_ASKED, id);
        return sent == 1;
    }

    // Memory's time is the simulation's, whatever clock the controller has.
    bool clock(Cycle_t) override {
        if (sardonyx_advance_to(memory, getCurrentSimTime("1 ps")) < 0) Fail("advance_to");
        sardonyx_answer answers[16];
        int64_t count;
        do {
            count = sardonyx_answers(memory, answers, 16);
            if (count < 0) Fail("answers");
            for (int64_t i = 0; i < count; i++) {
                Note(SARDONYX_DONE, answers[i].tag);
                handleMemResponse(answers[i].tag);
            }
        } while (count == 16);
        return false; // the clock goes on
    }

    void finish() override {
        if (sardonyx_finish(memory) < 0) Fail("finish");
        const char *text = sardonyx_figures(memory);
        FILE *file = text ? fopen(figures.c_str(), "w") : nullptr;
        if (!file || fprintf(file, "%s\n", text) < 0 || fclose(file)) Fail(figures.c_str());
    }

  private:
    [[noreturn]] void Fail(const char *what) {
        getSimulationOutput().fatal(CALL_INFO, 1, "sardonyx: %s: %s\n", what, sardonyx_error());
        abort();
    }

    void Note(uint32_t event, uint64_t tag) {
        if (sardonyx_note(memory, SARDONYX_PORT, event, tag, getCurrentSimTime("1 ps"), 64) < 0) Fail("log");
    }

    sardonyx_memory memory = 0;
    std::string figures;
};

}  // namespace MemHierarchy
}  // namespace SST
