#pragma once
// An MPS daemon for as long as this object lives, with a folder of its own in which nobody else looks for
// one: clients of other daemons and of none are left alone.

#include <string>

#include "core/types.hpp"

namespace carousel::bench {

/// A folder that vanishes with this object. Processes whose CUDA looks for MPS in it find none.
class mps_folder {
public:
    /// Throws shm_error.
    mps_folder();
    ~mps_folder();
    mps_folder(const mps_folder&) = delete;
    mps_folder& operator=(const mps_folder&) = delete;
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    /// For this process, before it touches CUDA.
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
    /// False: none can be started on this machine.
    [[nodiscard]] bool runs() const noexcept { return pid_ > 0; }

private:
    const mps_folder& in_;
    i32 pid_ = 0;
};

}  // namespace carousel::bench
