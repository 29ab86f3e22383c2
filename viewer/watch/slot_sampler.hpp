#pragma once
// Makes the picture of the frame in one slot, when the user requests it. A thread of this object asks the
// supervisor for the ring's memory, opens the device, copies the slot and computes the colours, so that none
// of these blocks the window. The slot is read without a lease (session/slot_copy.hpp): the run does not
// notice it. All functions must be called in the window's thread.

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control/client.hpp"
#include "session/slot_copy.hpp"
#include "viewer/watch/picture_choice.hpp"

namespace carousel::viewer {

struct slot_choice {
    std::string ring;   ///< name of the ring
    u32 slot = 0;       ///< index of the slot in the ring
    std::string plane;  ///< plane_picture::name; "": the colour plane if it is RGBA8, otherwise the first
    picture_style style;
    u64 ring_sequence = 0;  ///< the frame that the window showed in the slot when the user chose it
    bool operator==(const slot_choice&) const = default;
};

/// The result of one request.
struct slot_sample {
    slot_choice of;
    std::string text;    ///< which frame this is, or why there is no picture; one sentence
    bool whole = false;  ///< there is a picture, and it is complete
    shown_picture about;
    std::vector<std::byte> rgba;  ///< about.width x about.height RGBA8 pixels, top row first; empty: none
};

/// Describes a slot from which no frame was copied. `reused`: the number of copies that were discarded.
[[nodiscard]] std::string describe_slot(const carousel::session::slot_stamp& s, u32 slot, u32 reused);

class slot_sampler {
public:
    /// `block` is the block of the watched run.
    slot_sampler(std::shared_ptr<const run::mapped_block> block, std::string socket_path);
    ~slot_sampler();
    slot_sampler(const slot_sampler&) = delete;
    slot_sampler& operator=(const slot_sampler&) = delete;

    /// Requests a picture. Replaces an earlier request that has not been answered.
    void request(slot_choice of);
    /// Returns the result of the last request, once.
    [[nodiscard]] std::optional<slot_sample> take();

private:
    struct opened_ring;
    void loop();
    [[nodiscard]] slot_sample sample(const slot_choice& of);
    void open(const std::string& ring);
    [[nodiscard]] bool is_obsolete();

    std::shared_ptr<const run::mapped_block> block_;
    std::string socket_path_;
    std::unique_ptr<opened_ring> ring_;  ///< used by the thread only
    std::mutex mutex_;
    std::condition_variable wake_;
    std::optional<slot_choice> wanted_;
    std::optional<slot_sample> ready_;
    bool stop_ = false;
    std::thread thread_;
};

}  // namespace carousel::viewer
