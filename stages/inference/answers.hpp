#pragma once
// The sink: writes each view's class as one byte at the offset of the view's number, and the batch's hash
// into the ledger, so that equal runs have equal hashes. A redelivered frame writes the same bytes again.
// Input: carousel.classes. Settings: out, a file, relative to the pipeline file's directory or absolute ["":
// none is written]. A FIFO or a device receives the batches in delivery order; a batch that is delivered
// again is written twice.

#include <memory>
#include <string>
#include <vector>

#include "shm/fd_socket.hpp"
#include "stages/inference/views.hpp"

namespace carousel::stages {

class answers : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    void process(frame& f) override;
    [[nodiscard]] bool commits_on_host() const override { return true; }
    void finish(frame& f) override;

private:
    u64 batch_ = 0;
    std::string out_;
    shm::unique_fd file_;
    bool in_place_ = true;  ///< false for a FIFO or a device, which has no offsets
    struct answer {
        std::unique_ptr<device::mapping> classes, scores;
    };
    std::vector<answer> lanes_;
};

}  // namespace carousel::stages
