#pragma once
// Source of frames that come from another host (carousel-receive). Its settings: link_end.hpp, and
//   format  format of the frames, as JSON (carousel-send logs it), or "picture": of the pipeline's size
//   window  frames in flight without an acknowledgement; one page-locked buffer each [4]
//   work    true: the frames are work for this host, from any requesting process (remote_stage.hpp) [false]
//   successors   true: after the loss of a sending run, another one may follow, even from frame 0 [false]
//   sync    for a durable sender: calls sync(2) before it reports that frames are on disk [false]
// A frame arrives completely in page-locked memory and its hash is compared; only then does it begin
// (stage::ready): while no frame is there, nothing is leased and no clock runs. The frame's commit is
// reported to the other host. If this process dies, the other host, which still has the uncommitted frames,
// sends them again to the successor.

#include <memory>
#include <vector>

#include <carousel/stage.hpp>
#include "kernels/plane_hash.hpp"
#include "stages/hosts/durable_watch.hpp"
#include "stages/hosts/link_end.hpp"
#include "stages/hosts/receiver_link.hpp"

namespace carousel::stages {

class receive_stage : public stage {
public:
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    [[nodiscard]] bool ready(u64 ring_sequence, u64 done_below) override;
    void process(frame& f) override;
    /// Only this process may write the commit word, so that there are no gaps in the acknowledged frames.
    [[nodiscard]] bool commits_on_host() const override { return true; }
    void finish(frame& f) override;
    void committed(u64 ring_sequence) override;

private:
    void open(u64 next);
    /// True if the received bytes are equal to those that were sent; sets `data` to the unpacked bytes.
    [[nodiscard]] bool is_sound(hosts::receiver_link::arrived& a);
    [[nodiscard]] bool unpack(hosts::receiver_link::arrived& a);
    [[nodiscard]] frame_stamp stamp_of(const hosts::frame_message& m, bool own_parameters) const;

    hosts::link_end end_;
    u32 window_ = 0;
    bool sync_ = false, work_ = false, successors_ = false;
    std::vector<std::unique_ptr<device::mapping>> buffers_;
    /// the unpacked bytes of a compressed frame; allocated when the first such frame arrives
    std::vector<std::unique_ptr<device::mapping>> unpacked_;
    std::unique_ptr<device::context> host_;  ///< one thread that computes hashes
    std::unique_ptr<device::queue> hasher_;
    u64 expected_ = 0;                                   ///< next frame to begin
    std::optional<hosts::receiver_link::arrived> next_;  ///< already compared
    std::unique_ptr<hosts::receiver_link> link_;         ///< declared after the buffers, because this
                                                         ///< object's thread uses them
    std::unique_ptr<hosts::durable_watch> durable_;      ///< declared last, because this object's thread uses
                                                         ///< the link
};

}  // namespace carousel::stages
