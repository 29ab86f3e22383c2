#pragma once
// How a viewer gets the memory of a ring: one request and one answer with file descriptors over
// DIR/control.sock. The connection stays open; its end frees the viewer's place in the ring. This file writes
// and reads both.
//   {"type": "tap", "stage": "fragment"}            "": the ring that the last sink reads
//   {"ok": true, "run_id": "...", "link": 2, "stage": "fragment", "entry": 900, "format": {...},
//    "memory": {...}, "device": {"kind": "cpu", "uuid": "", "ordinal": 0}}     "memory": memory_message.hpp
// or a refusal (answer_message.hpp).

#include <string>

#include "core/described.hpp"
#include "device/described.hpp"

namespace carousel::run {

struct tap_request {
    static constexpr const char* type = "tap";
    std::string stage;
    static constexpr field_rules rules{.sparse = true};
};
BOOST_DESCRIBE_STRUCT(tap_request, (), (stage))
struct tap_answer {
    std::string run_id;
    u32 link = 0;
    std::string stage;
    u32 entry = 0;                  ///< identifies the viewer in latest groups; never an incarnation's
    nlohmann::json format, memory;  ///< of the ring: frame/frame_format.hpp; memory_message.hpp
    device::device_id device;       ///< of the stage that writes it
    bool ok = true;
};
BOOST_DESCRIBE_STRUCT(tap_answer, (), (ok, run_id, link, stage, entry, format, memory, device))

/// Throws config_error for a refusal, json::exception for an answer of another version.
[[nodiscard]] tap_answer read_tap(const nlohmann::json& answer);

}  // namespace carousel::run
