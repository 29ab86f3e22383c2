#pragma once
// Shared by the ports of one open run: the observed run (control/client.hpp) and the devices on which
// frames are delivered. One thread at a time.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <carousel/port.hpp>
#include "control/client.hpp"
#include "control/mapped_ring.hpp"
#include "core/process.hpp"

namespace carousel {

/// Throws config_error in a forked child of the process that opened the port.
void require_port_owner(const owner_process& owner, const std::string& port);

class port_attachment {
public:
    port_attachment(const std::string& name, open_options options);

    /// Determines which supervisor controls the run, whether the run has ended, and whether it has another
    /// block. Polls at most ten times per second.
    void poll();
    /// Throws config_error in a forked child.
    void require_owner() const;
    [[nodiscard]] bool ended() const noexcept { return ended_; }
    [[nodiscard]] const std::string& ending() const noexcept { return ending_; }
    [[nodiscard]] const run::record& run() const noexcept { return observer_ ? observer_->run() : found_; }
    /// Null after the run has ended. Throws shm_error if the run's shared memory has no name here, for
    /// example in a container that has only the run's runtime directory.
    [[nodiscard]] const std::shared_ptr<const run::mapped_block>& block() { return observed().mapped(); }
    [[nodiscard]] const open_options& options() const noexcept { return options_; }
    [[nodiscard]] std::vector<std::string> stages();

    /// Returns the context of a device, which is identified in the same way as by the supervisor.
    [[nodiscard]] const std::shared_ptr<device::context>& device_named_by(const device::device_id& id);
    /// The device on which this ring's frames are delivered. `in_host_memory`: true if they are delivered in
    /// host memory.
    [[nodiscard]] std::shared_ptr<device::context> device_for(const run::mapped_ring& ring,
                                                              bool& in_host_memory);
    /// Returns the reason why no frame arrives, as far as the run's block and record show it: one clause for
    /// a message.
    [[nodiscard]] std::string stall_reason() const;

private:
    [[nodiscard]] run::observer& observed();

    open_options options_;
    owner_process owner_;
    run::record found_;
    std::unique_ptr<run::observer> observer_;  ///< null: the run's block can't be opened by name
    std::vector<std::pair<device::device_id, std::shared_ptr<device::context>>> devices_;
    bool ended_ = false;
    std::string ending_;
    u64 next_poll_ns_ = 0, over_since_ns_ = 0;
};

}  // namespace carousel
