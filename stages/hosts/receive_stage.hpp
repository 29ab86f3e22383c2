#pragma once
// The source whose frames come from another host (carousel-receive). Its settings: link_settings.hpp, and
//   format  what the frames are, as JSON (carousel-send logs it), or "picture": of the pipeline's size
//   window  frames under way without an acknowledgement; a page-locked buffer each [4]
//   work    true: the frames are work for this host, whichever process asks (remote_stage.hpp) [false]
//   successors   true: a sending run that is lost may be followed by another, even from frame 0 [false]
//   sync    for a durable sender: sync(2) before it hears that frames are on disk [false]
// A frame comes whole into page-locked memory, its hash is compared, and only then is it begun
// (stage::ready): while none is there nothing is taken and no clock runs. Its commit is what the other host
// is told. Numbers that were not committed when this process dies come again to the next one, from the other
// host, which has them still.

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
    /// The ring's word must be this process's own: what is acknowledged is then a row without gaps.
    [[nodiscard]] bool commits_on_host() const override { return true; }
    void finish(frame& f) override;
    void committed(u64 ring_sequence) override;

private:
    void open(u64 next);
    /// Its bytes are those that were sent; `data` becomes where they lie unpacked.
    [[nodiscard]] bool is_sound(hosts::receiver_link::arrived& a);
    [[nodiscard]] bool unpack(hosts::receiver_link::arrived& a);
    [[nodiscard]] frame_stamp stamp_of(const hosts::frame_message& m, bool own_parameters) const;

    hosts::link_end end_;
    u32 window_ = 0;
    bool sync_ = false, work_ = false, successors_ = false;
    std::vector<std::unique_ptr<device::mapping>> buffers_;
    /// of frames that come packed, what they are; made with the first one that does
    std::vector<std::unique_ptr<device::mapping>> unpacked_;
    std::unique_ptr<device::context> host_;  ///< one thread that compares hashes
    std::unique_ptr<device::queue> hasher_;
    u64 expected_ = 0;                                   ///< the next frame that is begun
    std::optional<hosts::receiver_link::arrived> next_;  ///< compared already
    std::unique_ptr<hosts::receiver_link> link_;         ///< its thread uses the buffers
    std::unique_ptr<hosts::durable_watch> durable_;      ///< last: its thread uses the link
};

}  // namespace carousel::stages
