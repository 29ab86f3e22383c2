// A profiler for the test of the ranges: NVTX loads it by NVTX_INJECTION64_PATH into any process, as it loads
// Nsight. Writes "domain NAME", "push NAME TEXT" and "pop NAME" lines into $CAROUSEL_NVTX_OUT.PID, one write
// each.
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

int out_file() {
    static const int fd =
        ::open((std::string(std::getenv("CAROUSEL_NVTX_OUT")) + "." + std::to_string(::getpid())).c_str(),
               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return fd;
}

void line(const char* what, const char* domain, const char* text) {
    char all[256];
    const int n = std::snprintf(all, sizeof all, "%s %s%s%s\n", what, domain, *text != '\0' ? "|" : "", text);
    if (::write(out_file(), all, static_cast<std::size_t>(n)) != n) std::abort();
}

// A domain's handle is its name; names live as long as the process.
nvtxDomainHandle_t NVTX_API domain_create(const char* name) {
    line("domain", name, "");
    return reinterpret_cast<nvtxDomainHandle_t>(new std::string(name));
}
const char* name_of(nvtxDomainHandle_t d) { return reinterpret_cast<const std::string*>(d)->c_str(); }
int NVTX_API push(nvtxDomainHandle_t d, const nvtxEventAttributes_t* a) {
    line("push", name_of(d), a->message.ascii);
    return 0;
}
int NVTX_API pop(nvtxDomainHandle_t d) {
    line("pop", name_of(d), "");
    return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
    const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get(NVTX_ETID_CALLBACKS));
    NvtxFunctionTable table = nullptr;
    unsigned size = 0;
    if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0)
        return 0;
    if (size <= NVTX_CBID_CORE2_DomainCreateA) return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(domain_create);
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(push);
    *table[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
    return 1;
}
