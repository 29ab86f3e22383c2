#pragma once
// A seat for a stage's instances on another host (carousel-remote, which the plan puts in). It takes frames
// as any instance does, has them worked on over there, and commits what comes back. Its settings are those of
// link_settings.hpp, of the link to the other host, and
//   back_address, back_port   where the answers come in, on this host
//   format, output            what the stage makes, as JSON, and what it calls it
//   give_back_ms              a frame that was not answered within so long goes to another instance [5000]
//
//   this host                                      the other one, a run of its own
//   ring -> a lease of this seat -> link (work)    -> carousel-receive -> the stage's instances
//   ring <- commit of this seat  <- link (answers) <- carousel-send    <-
//
// The ring here and its commit alone say what has happened. The other host computes, and may lose what it
// has: then nothing comes back, and the frame goes to another instance. Frames have numbers of that host's
// ring, in the order in which they are sent: an answer counts if it comes from the run that was asked, with a
// number that this process has given to a frame which it still has. It began above all that predecessors had
// sent, and ends when that row breaks (sending_side.hpp).
//
// Frames are given back by ending (exit_code::gave_back): that frees every lease by the ring's own rules,
// counts no attempt, and the successor takes none before the other host is through with what it has. So a
// host that is away, or stands still, gets no frame.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <carousel/stage.hpp>
#include "stages/hosts/link_end.hpp"
#include "stages/hosts/outgoing_payload.hpp"
#include "stages/hosts/receiver_link.hpp"
#include "stages/hosts/sender_link.hpp"

namespace carousel::stages {

class remote_stage : public stage {
public:
    remote_stage() = default;
    remote_stage(const remote_stage&) = delete;
    remote_stage& operator=(const remote_stage&) = delete;
    /// At the end of a run: the other host is told that no more work comes.
    ~remote_stage() override;
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    [[nodiscard]] bool ready(u64 ring_sequence, u64 done_below) override;
    void process(frame& f) override;
    [[nodiscard]] bool commits_on_host() const override { return true; }
    void finish(frame& f) override;

private:
    /// A frame that is over there. Its memory is this process's until finish() returns.
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
    std::vector<std::unique_ptr<device::mapping>> buffers_;  ///< what comes in
    std::vector<u64> numbers_;                               ///< of each lane's frame, over there
    std::unique_ptr<device::queue> collector_queue_;
    std::unique_ptr<device::mapping> collector_scratch_, answer_hash_;
    std::unique_ptr<hosts::sender_link> work_;
    std::unique_ptr<hosts::receiver_link> answers_;
    std::mutex mutex_;  ///< guards what follows
    std::condition_variable changed_;
    std::map<u64, asked> asked_;  ///< by number
    bool has_updates_ = false, ending_ = false;
    std::string broken_;
    std::thread collector_;  ///< the one thread that uses its queue
};

}  // namespace carousel::stages
