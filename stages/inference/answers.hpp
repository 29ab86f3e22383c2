#pragma once
// The sink: puts down each view's class, in a byte at the view's number, and its hash for the ledger: of
// equal batches equal runs have equal hashes. A frame that comes again is put down again, the same. Input:
// carousel.classes. Settings: out, a file in the run's folder or anywhere ["": none is written].

#include <memory>
#include <string>
#include <vector>

#include "shm/fd_socket.hpp"
#include "stages/inference/formats.hpp"

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
    struct answer {
        std::unique_ptr<device::mapping> classes, scores;
    };
    std::vector<answer> lanes_;
};

}  // namespace carousel::stages
