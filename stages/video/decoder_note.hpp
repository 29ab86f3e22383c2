#pragma once
// What a successor must know of a decoder that died: which packet the decoder was working on, and for which
// frame. Each process has a note of its own in the run's runtime directory, which is memory shared with the
// page cache: the kernel keeps it when the process is killed. The list of packets that are skipped for ever
// is one file of the run.

#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages::video {

/// Identifies a packet of a file.
struct packet_id {
    i64 dts = 0, pos = 0;
    u32 bytes = 0;
    bool operator==(const packet_id&) const = default;
};

/// The step that the process has not returned from.
enum class decoder_step : u32 {
    none = 0,
    read = 1,    ///< reading the packet after `packet`
    decode = 2,  ///< decoding `packet`
};

struct suspect {
    decoder_step step = decoder_step::none;
    packet_id packet;
    u64 frame = 0;             ///< the frame that was to be output
    bool catching_up = false;  ///< the process had not yet reached the first frame that is not committed
    u32 deaths = 0;            ///< of processes in a row, at this step
};

/// Returns the identity of the video's content that the first process of the run has written to `path`; if
/// there is none, writes `content`, as a whole or not at all. Throws output_error.
[[nodiscard]] u64 recorded_content(const std::string& path, u64 content);

class decoder_note {
public:
    /// Opens the note of the process with incarnation number `epoch`, and reads what its predecessor has left
    /// and what is skipped. `stem`: path that the names of all files begin with. Throws output_error.
    decoder_note(std::string stem, u32 epoch);
    ~decoder_note();
    decoder_note(const decoder_note&) = delete;
    decoder_note& operator=(const decoder_note&) = delete;

    /// The predecessor's last step, if it died in it; empty as soon as this process has done that step.
    [[nodiscard]] const std::optional<suspect>& suspicion() const noexcept { return suspicion_; }
    /// Called before and after each step. Each costs a few stores.
    void begin(decoder_step step, const packet_id& packet, u64 frame, bool catching_up) noexcept;
    void end() noexcept;

    /// Adds the suspect to the list of what is skipped. Throws output_error.
    void skip_suspect();
    [[nodiscard]] bool has_skipped() const noexcept { return !skipped_.empty(); }
    [[nodiscard]] bool is_skipped(const packet_id& packet) const noexcept;
    /// True if reading the packet after `packet` has ended processes over several frames: the video ends
    /// there.
    [[nodiscard]] bool is_end(const packet_id& packet) const noexcept;

private:
    struct record;
    void read_predecessor(u32 epoch);
    void read_skipped();

    std::string stem_;
    record* own_ = nullptr;
    std::optional<suspect> suspicion_;
    std::vector<suspect> skipped_;
};

}  // namespace carousel::stages::video
