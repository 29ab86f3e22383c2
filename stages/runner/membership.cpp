#include "stages/runner/membership.hpp"

#include "shm/process_fd.hpp"
#include "shm/runtime_folder.hpp"
#include "shm/segment.hpp"

namespace carousel::stages {
namespace {

// Never destroyed, because an exit note may be written into the block after the runtime is gone.
struct membership {
    const shm::segment* block = nullptr;
    shm::unique_fd folder;
};

membership& own() {
    static membership& m = *new membership;
    return m;
}

}  // namespace

shm::control_block& join_run(const std::string& run_id) {
    const shm::segment* joined = new shm::segment(shm::segment::join(run_id));
    own().block = joined;
    return joined->block();
}

void join_folder(const std::string& runtime_directory) { own().folder = shm::join_folder(runtime_directory); }

void release_run() noexcept {
    if (own().block != nullptr) own().block->release();
    if (own().folder) shm::unlock(own().folder.get());
}

}  // namespace carousel::stages
