#pragma once
// A receiving_side with its transport, its buffers and its thread. Any thread may call; the thread that talks
// to UCX is one of its own, and lives as long as the object.

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "stages/hosts/link/receiving_side.hpp"
#include "stages/hosts/link_figures.hpp"
#include "stages/hosts/link_settings.hpp"
#include "stages/hosts/ucx/transport.hpp"

namespace carousel::hosts {

/// What a link keeps in its run's runtime directory: whose frames the ring has, and where they end. Each is
/// kept before the sender hears that it is known; so a next process knows it, whenever this one dies.
struct link_note {
    std::string run;  ///< this one: what another run has left is nothing
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
        std::string note_path;  ///< "": nothing is kept for a next process
        std::string figures_path;
        u64 next = 0;                     ///< the first frame that is not committed here
        std::vector<packing> unpacks;     ///< how frames may come beside packing::none
        bool has_other_links = false;     ///< other links lead to this run
        bool accepts_successors = false;  ///< see receiving_side
        std::vector<std::byte*> buffers;  ///< a window of them, each of expected.payload_bytes
        std::function<void()> wake;       ///< a frame is there, or the end; from the link's thread
    };
    explicit receiver_link(set_up s);
    ~receiver_link() override;

    /// Frame `ring_sequence` if it is there whole, with its bytes.
    struct arrived {
        frame_message message;
        const std::byte* data = nullptr;
        std::string run = {};  ///< of answers: who has sent it
    };
    /// Throws config_error: the port is in use, or UCX can't be set up.
    [[nodiscard]] std::optional<arrived> whole(u64 ring_sequence);
    void damaged(u64 ring_sequence);
    void free_buffer(u64 ring_sequence);
    /// Of answers (link_kind::answers): the oldest that is there whole and was not freed, and the run that
    /// sent it. A new sender's bytes may take the place of these while they are read: the hash tells. Throws
    /// as whole() does.
    [[nodiscard]] std::optional<arrived> oldest_whole();
    /// It was looked at: its buffer is free, and its sender is told, if that is the present one still.
    void taken(const arrived& a);
    void committed(u64 below);
    void durable(u64 below);
    [[nodiscard]] bool wants_durable();
    /// The sending host's clock; nothing: it is not known yet.
    [[nodiscard]] std::optional<clock_relation> clock(u64 now);
    void skip_to(u64 ring_sequence);
    /// Where the stream ends, once that is kept.
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
    std::mutex mutex_;  ///< guards what follows
    link_note note_;
    link_figures figures_;
    receiving_side side_;
    transport* transport_ = nullptr;
    std::string broken_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace carousel::hosts
