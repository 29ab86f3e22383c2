#pragma once
// A bottleneck in reports, `ps --json` and /status.json: {"kind": "stage" | "gpu" | "pace" | "none" |
// "paused" | "down" | "vacant" | "unknown", "stage": name | null, "busy": 0..1 | null, "text": the sentence
// for users}. The supervisor sets "vacant": a port that no program has opened, which this library treats as
// "down".

#include "core/json.hpp"
#include "telemetry/bottleneck.hpp"

namespace carousel::telemetry {

[[nodiscard]] inline nlohmann::json bottleneck_json(const bottleneck& b, const std::string& name, f64 fps) {
    return {{"kind", name_of(b.what)},
            {"stage", b.stage != shm::none ? nlohmann::json(name) : nlohmann::json()},
            {"busy", b.what == bottleneck::kind::stage ? nlohmann::json(b.busy) : nlohmann::json()},
            {"text", describe(b, name, fps)}};
}

}  // namespace carousel::telemetry
