#pragma once
// An MPS daemon that runs while this object exists. Its folder is private, so processes that use another
// daemon, or none, are not affected.

#include <string>

#include "core/types.hpp"

namespace carousel::bench {

/// A folder that is removed with this object. Processes that use this folder as CUDA's MPS folder find no
/// daemon, unless an mps_daemon uses the same folder.
class mps_folder {
public:
    /// Throws shm_error.
    mps_folder();
    ~mps_folder();
    mps_folder(const mps_folder&) = delete;
    mps_folder& operator=(const mps_folder&) = delete;
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    /// Makes this process use the folder; must be called before the process touches CUDA.
    void enter() const;

private:
    std::string path_;
};

class mps_daemon {
public:
    explicit mps_daemon(const mps_folder& in);
    ~mps_daemon();
    mps_daemon(const mps_daemon&) = delete;
    mps_daemon& operator=(const mps_daemon&) = delete;
    /// False if no daemon can be started on this machine.
    [[nodiscard]] bool runs() const noexcept { return pid_ > 0; }

private:
    const mps_folder& in_;
    i32 pid_ = 0;
};

}  // namespace carousel::bench
