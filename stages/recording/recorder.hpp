#pragma once
// The stage that records (carousel-record): every frame of the rings that it reads, once and whole, into one
// MCAP file.
//   out          the file, relative to the pipeline file's folder
//   compression  "lz4", "zstd", "none" [the first that was built in]
// A frame commits behind its unit in the file (mcap/record.hpp). Where it dies the next life goes on behind
// the last whole unit, and passes over a frame that stands there already. Void frames have no payload and are
// left out.

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
    /// At the end of a run: the file gets its end, with an index.
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
        lanes_;  ///< a lane, an input: its slot for the CPU
};

}  // namespace carousel::stages
