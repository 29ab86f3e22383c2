#pragma once
// The stage that records (carousel-record): it writes every frame of the rings that it reads, once and
// completely, into one MCAP file.
//   out          the file, relative to the pipeline file's folder
//   compression  "lz4", "zstd", "none" [the first one that is built in]
//   images       writes a small JPEG of each picture in addition, for other programs [false]
//   image_width  greatest width of these pictures [640]
// A frame commits after its unit is in the file (mcap/record.hpp). After a crash the next incarnation
// continues after the last complete unit, and skips a frame that the file already has. Tombstone frames have
// no payload and are omitted.

#include <memory>
#include <string>
#include <vector>

#include <carousel/stage.hpp>
#include "stages/recording/tape.hpp"

namespace carousel::stages {

class recorder : public stage {
public:
    recorder() = default;
    recorder(const recorder&) = delete;
    recorder& operator=(const recorder&) = delete;
    /// Called at the end of a run: writes the end of the file, with an index.
    ~recorder() override;
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;
    [[nodiscard]] bool commits_on_host() const override { return true; }
    void finish(frame& f) override;

private:
    std::string stage_, path_, compression_;
    recording about_;
    std::unique_ptr<tape> tape_;
    u64 tombstones_ = 0;
    std::vector<std::vector<std::unique_ptr<device::mapping>>>
        lanes_;  ///< for each lane and input: a slot that the CPU can read
};

}  // namespace carousel::stages
