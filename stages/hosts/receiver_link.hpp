#pragma once
// A receiving_side with its transport, its buffers and its thread. Its functions may be called from any
// thread. Only its own thread calls UCX; this thread runs as long as the object exists.

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "stages/hosts/link/receiving_side.hpp"
#include "stages/hosts/link_end.hpp"
#include "stages/hosts/ucx/transport.hpp"

namespace carousel::hosts {

/// State of a link in its run's runtime directory: the run whose frames are in the ring, and the end of its
/// stream. Each value is saved before it is confirmed to the sender, so a successor has the value regardless
/// of when this process dies.
struct link_note {
    std::string run;  ///< id of this run; a note that another run has left is ignored
    std::string sender;
    std::optional<u64> end;

    [[nodiscard]] static link_note read(const std::string& path, const std::string& run);
    void write(const std::string& path) const;  ///< throws shm_error
};

class receiver_link final : private transport::events {
public:
    struct set_up {
        link_settings where;
        hello expected;
        token_file token;
        std::string run;
        std::string note_path;  ///< "": nothing is saved for a successor
        std::string figures_path;
        u64 next = 0;                     ///< first frame that is not committed here
        std::vector<packing> unpacks;     ///< accepted compressions, in addition to packing::none
        bool has_other_links = false;     ///< this run has other receiving links
        bool accepts_successors = false;  ///< see receiving_side
        std::vector<std::byte*> buffers;  ///< `window` buffers of expected.payload_bytes each
        std::function<void()> wake;       ///< called on the link's thread when a frame is complete, and when
                                          ///< the sender's stream ends
    };
    explicit receiver_link(set_up s);
    ~receiver_link() override;

    /// A complete frame with its bytes.
    struct arrived {
        frame_message message;
        const std::byte* data = nullptr;
        std::string run = {};  ///< only for a receiver of answers: the run that sent the frame
    };
    /// Returns frame `ring_sequence` if it is complete. Throws config_error if the port is in use, or if UCX
    /// cannot be set up.
    [[nodiscard]] std::optional<arrived> whole(u64 ring_sequence);
    void damaged(u64 ring_sequence);
    void free_buffer(u64 ring_sequence);
    /// Only for a receiver of answers (link_kind::answers): returns the oldest frame that is complete and not
    /// freed, and the run that sent it. A new sender's bytes may overwrite these bytes while they are read;
    /// the hash detects such an overwrite. Throws as whole() does.
    [[nodiscard]] std::optional<arrived> oldest_whole();
    /// Called when an answer has been processed. If the process that sent the answer is still the current
    /// sender, frees the answer's buffer and acknowledges the answer.
    void taken(const arrived& a);
    void committed(u64 below);
    void durable(u64 below);
    [[nodiscard]] bool wants_durable();
    /// Returns the sending host's clock; nothing if it is not known yet.
    [[nodiscard]] std::optional<clock_relation> clock(u64 now);
    void skip_to(u64 ring_sequence);
    /// Returns the end of the stream after it has been saved.
    [[nodiscard]] std::optional<u64> end();

private:
    [[nodiscard]] receiving_side make_side() const;
    void run();
    bool listen(transport& t);
    void carry_out(transport& t, const actions& todo);
    void keep();
    void leave(transport& t);

    void accepted(u32 connection) override;
    void closed(u32 connection, const std::string& why) override;
    void broke_limits(u32 connection, const std::string& why) override;
    void message_received(u32 connection, std::span<const std::byte> bytes) override;
    std::byte* frame_begins(u32 connection, std::span<const std::byte> header, u64 bytes,
                            u64& ticket) override;
    void frame_received(u64 ticket, bool whole) override;
    void frame_sent(u32, u64) override {}

    set_up set_;
    std::mutex mutex_;  ///< guards the following members
    link_note note_;
    link_figures figures_;
    receiving_side side_;
    transport* transport_ = nullptr;
    std::string broken_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace carousel::hosts
