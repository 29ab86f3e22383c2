#pragma once
// numbers -> middle -> sink of device stages on one GPU.

#include <string>

#include "tests/crash/run_fixture.hpp"

namespace carousel::test {

struct device_keys {
    std::string pipeline, source, middle, sink;  ///< further keys of each section
    std::string memory = "vmm";                  ///< of both rings
    std::string guard = "auto";                  ///< of the middle's ring
};
[[nodiscard]] std::string device_pipeline(const std::string& name, const device_keys& keys);
/// The stamp of a stage's log line "frame N taken at T ns"; 0 when there is none.
[[nodiscard]] u64 taken_at(const std::string& log, const std::string& stage, u64 frame);
/// The hash of a fault-free run of N frames.
[[nodiscard]] std::string undisturbed_device_hash(u64 frames);

}  // namespace carousel::test
