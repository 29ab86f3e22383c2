#pragma once
// The process that represents a stage's instances on another host (carousel-remote; the plan inserts it): it
// has one of the stage's seats. The seat's process takes frames like any other instance, sends them to the
// other host for processing, and commits the answers. Its settings are those of link_end.hpp, for the link to
// the other host, and
//   back_address, back_port   address and port on this host at which the answers arrive
//   format, output            format of the stage's output, as JSON, and the output's name
//   give_back_ms              a frame without an answer after this time goes to another instance [5000]
//
//   this host                                      the other host, a separate run
//   ring -> a lease of this seat -> link (work)    -> carousel-receive -> the stage's instances
//   ring <- commit of this seat  <- link (answers) <- carousel-send    <-
//
// Only the ring here and its commits are authoritative. The other host only computes: if it loses a frame, no
// answer arrives, and the ring gives the frame to another instance. On the link, frames have the numbers of
// the other host's ring, in the order in which they are sent. An answer is accepted if it comes from the run
// to which the work was sent, and if its number belongs to a frame that this process has sent and still has.
// The numbers start above all numbers that predecessors have sent. If the other host does not continue this
// numbering, this process ends (sending_side.hpp).
//
// To return its frames, the process exits (exit_code::gave_back). By the ring's rules this frees every lease,
// and no attempt is counted. The successor takes no frame until the other host has finished the frames that
// its predecessors sent. So a host that is unreachable or stalled gets no frame.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <carousel/stage.hpp>
#include "stages/hosts/link_end.hpp"
#include "stages/hosts/link_frame.hpp"
#include "stages/hosts/receiver_link.hpp"
#include "stages/hosts/sender_link.hpp"

namespace carousel::stages {

class remote_stage : public stage {
public:
    remote_stage() = default;
    remote_stage(const remote_stage&) = delete;
    remote_stage& operator=(const remote_stage&) = delete;
    /// Called at the end of a run: reports to the other host that no more work follows.
    ~remote_stage() override;
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    [[nodiscard]] bool ready(u64 ring_sequence, u64 done_below) override;
    void process(frame& f) override;
    [[nodiscard]] bool commits_on_host() const override { return true; }
    void finish(frame& f) override;

private:
    /// A frame that is on the other host. The frame's memory belongs to this process until finish() returns.
    struct asked {
        std::byte* to = nullptr;
        bool answered = false;
        hosts::frame_message answer;
    };

    void open();
    void send(frame& f, u64 number);
    [[nodiscard]] hosts::frame_message await(frame& f, u64 number);
    void collect();
    void handle_answer(const hosts::receiver_link::arrived& a);
    [[nodiscard]] bool fill(std::byte* to, const hosts::receiver_link::arrived& a);

    hosts::link_end end_;
    hosts::link_settings back_;
    frame_format made_;
    u64 made_bytes_ = 0, give_back_ns_ = 0;
    hosts::outgoing_payload payload_;
    std::vector<std::unique_ptr<device::mapping>> buffers_;  ///< buffers for arriving answers
    std::vector<u64> numbers_;  ///< for each lane, the number of the lane's frame on the other host
    std::unique_ptr<device::queue> collector_queue_;
    std::unique_ptr<device::mapping> collector_scratch_, answer_hash_;
    std::unique_ptr<hosts::sender_link> work_;
    std::unique_ptr<hosts::receiver_link> answers_;
    std::mutex mutex_;  ///< guards the following members
    std::condition_variable changed_;
    std::map<u64, asked> asked_;  ///< by number
    bool has_updates_ = false, ending_ = false;
    std::string broken_;
    std::thread collector_;  ///< the only thread that uses collector_queue_
};

}  // namespace carousel::stages
