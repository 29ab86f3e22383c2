#include "device/profiler.hpp"

#if defined(CAROUSEL_WITH_CUDA) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

#include <cstdio>

namespace carousel::device {

// Null if no profiler is attached; in that case no other NVTX function is called.
profiler::profiler(const std::string& domain) noexcept
    : domain_(nvtxDomainCreateA(("carousel " + domain).c_str())) {}

profiler::~profiler() {
    if (domain_ != nullptr) nvtxDomainDestroy(static_cast<nvtxDomainHandle_t>(domain_));
}

void profiler::begin(const char* what, u64 ring_sequence) noexcept {
    char text[64];
    if (ring_sequence == profiler_range::no_sequence)
        std::snprintf(text, sizeof text, "%s", what);
    else
        std::snprintf(text, sizeof text, "%s %llu", what, static_cast<unsigned long long>(ring_sequence));
    nvtxEventAttributes_t a{};
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = text;
    a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    a.payload.ullValue = ring_sequence;
    nvtxDomainRangePushEx(static_cast<nvtxDomainHandle_t>(domain_), &a);
}

void profiler::end() noexcept { nvtxDomainRangePop(static_cast<nvtxDomainHandle_t>(domain_)); }

}  // namespace carousel::device

#else

namespace carousel::device {

profiler::profiler(const std::string&) noexcept {}
profiler::~profiler() = default;
void profiler::begin(const char*, u64) noexcept {}
void profiler::end() noexcept {}

}  // namespace carousel::device

#endif
