#include "telemetry/depth.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/enum_names.hpp"

namespace carousel::telemetry {
namespace {

// {lanes 8, window 8, graphs 1, reach 3, why 4, contexts 8, work_ns 32}
constexpr unsigned graphs_at = 47, reach_at = 44, why_at = 40;
constexpr u64 byte_of(u64 word, unsigned shift) { return word >> shift & 0xFFU; }
constexpr u64 small_of(u64 word, unsigned shift, u64 mask) { return word >> shift & mask; }
constexpr u64 as_byte(u32 value, unsigned shift) { return u64{std::min(value, 255U)} << shift; }

std::string a_frame(u32 work_ns) {
    return fmt::format("{:.3f} ms per frame", static_cast<f64>(work_ns) / 1e6);
}

}  // namespace

BOOST_DESCRIBE_ENUM(reach_state, none, trying, mapping, copy)
const char* name_of(reach_state r) noexcept { return r == reach_state::none ? "" : enum_name(r, ""); }

depth_view depth_view::of(u64 word) noexcept {
    depth_view v;
    v.lanes = static_cast<u32>(byte_of(word, 56));
    v.window = static_cast<u32>(byte_of(word, 48));
    v.graphs = small_of(word, graphs_at, 1) != 0;
    v.reach = static_cast<reach_state>(small_of(word, reach_at, 7));
    v.why = static_cast<depth_reason>(small_of(word, why_at, 15));
    v.contexts = static_cast<u32>(byte_of(word, 32));
    v.work_ns = static_cast<u32>(word);
    return v;
}

u64 depth_view::pack() const noexcept {
    return as_byte(lanes, 56) | as_byte(window, 48) | u64{graphs} << graphs_at |
           u64{static_cast<u8>(reach)} << reach_at | u64{static_cast<u8>(why)} << why_at |
           as_byte(contexts, 32) | work_ns;
}

std::string depth_view::reason() const {
    switch (why) {
        case depth_reason::given:
            return "set in the file";
        case depth_reason::requested:
            return "from latency in the file";
        case depth_reason::cores:
            return "limited by CPU cores, so more frames would not help";
        case depth_reason::unmeasured:
            return "as planned; no frames are measured yet";
        case depth_reason::turns:
            return fmt::format("{} contexts take turns on the GPU, with {} over all contexts", contexts,
                               a_frame(work_ns));
        case depth_reason::hops:
            return fmt::format("{}, which hides the latency to the next process", a_frame(work_ns));
        case depth_reason::finishing:
            return "one frame per finish thread";
        case depth_reason::unknown:
            break;
    }
    return "";
}

}  // namespace carousel::telemetry
