#pragma once
// Another host whose run sends frames to the simulated run, and the network between the two hosts. Both sides
// of the link are the product's (stages/hosts/link). Messages are delayed; connections break, or deliver
// nothing for a while; the sender's process dies and is replaced. The other host keeps each frame until the
// link releases it.

#include <memory>
#include <optional>

#include "core/types.hpp"
#include "simulated_machine.hpp"

namespace carousel::test {

struct observed_run;

class simulated_link {
public:
    virtual ~simulated_link() = default;
    /// The process `pid` receives from now on. Returns false while another process does.
    virtual bool open(const simulated_process& by, u64 next) = 0;
    virtual void close(const simulated_process& by) = 0;
    /// As receive_stage::ready(): the frame, or the end of the stream, has arrived. A frame that has arrived
    /// stays so until it begins: a successor may have no free job word yet.
    virtual bool ready(u64 ring_sequence, u64 done_below) = 0;
    /// As receive_stage::process() and finish(): the frame's bytes are copied, and its buffer is free.
    virtual void process(u64 ring_sequence) = 0;
    virtual void finish(u64 ring_sequence) = 0;
    /// The frame before which the stream ends, as stored on this host's disk.
    [[nodiscard]] virtual std::optional<u64> end() const = 0;
    virtual void committed(u64 ring_sequence) = 0;
    /// All frames below this number are in the files of all sinks of this host.
    virtual void delivered(u64 below) = 0;

    /// Loses what is in flight, by one of the faults above.
    virtual void lose(u64 for_ns) = 0;
    [[nodiscard]] virtual bool is_durable() const = 0;
    /// Number of faults of the link, by name.
    [[nodiscard]] virtual std::string text() const = 0;
};

/// A sender of `frames` frames; `durable`: it keeps each until the sinks here have it in their files.
[[nodiscard]] std::unique_ptr<simulated_link> make_simulated_link(observed_run& r, u64 frames, bool durable);

}  // namespace carousel::test
