#pragma once
// Ports: a program that no supervisor has started reads or writes frames of a run through a port. Such a
// program opens the run by name, may start at any time, restart any number of times, and be killed at any
// instruction.
//
//   auto run = carousel::open("demo");
//   for (auto& f : run.latest("fragment")) show(f.plane<const carousel::u8>("color"));
//
// The ports that take part in a run (`reader` and `writer`) are declared in port_frames.hpp, which this
// header includes.
//
// `latest` returns the newest frame of a stage's output, for observers. A `latest` reader never blocks the
// run, even if the reader is slow, stopped or dead. Frames may be skipped, but a torn frame is never
// returned:
// - A frame is delivered as a copy, made under a lease that lasts only during the copy. A frame is
//   discarded and counted in losses() if its lease was revoked meanwhile (copying took longer than
//   latest_lease_ms, 250 ms), if its status word or header does not match, or if it is a tombstone, which has
//   no image.
// - A delivered frame belongs to the program until it requests the next one, without a time limit. With
//   memory() the program can keep the planes' memory longer.
// - A link has 8 places, which viewers, displays and ports share. A place becomes free when the process that
//   uses the place ends.
//
// Crashes. Stages and the supervisor may die and be replaced: the port continues, and frame numbers keep
// increasing. Frame numbers may start again only if the run restarts with new memory. When the run is over,
// the loop ends, and ending() describes how the run ended.
//
// open_options::device determines where frames are delivered. On a GPU enqueue all work on a frame on its
// stream(); work on another stream must be complete before the next frame is requested, because this request
// overwrites the current frame. Port calls preserve the calling thread's current CUDA device; if the thread
// had no current device, the frames' device becomes its current device.
//
// Every wait has a timeout. When the timeout expires, next(timeout_s) returns null, and the loop throws
// nothing_new, whose text names the cause of the wait. An open run and its ports may be used by one thread at
// a time. A forked child can't use them: each call throws config_error, and destroying its copies does
// nothing. The parent's place becomes free when the parent ends, even if the child still runs. Linking
// carousel::stage is enough. Errors are carousel::error: config_error for names (no such run, no such stage,
// all places taken), shm_error for a run of another user or another version of Carousel, device_error for
// devices, cuda_error if the GPU failed.

#include <cstddef>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "core/process.hpp"
#include "core/types.hpp"
#include "device/backend.hpp"
#include "frame/metadata.hpp"
#include "parameters/parameter_schema.hpp"
#include "stages/sdk/metadata.hpp"
#include "stages/sdk/payload.hpp"
#include "stages/sdk/port_frames.hpp"

namespace carousel {

using device::device_kind;

/// Options of open().
struct open_options {
    /// Where frames are delivered. "": in the same memory as the ring; "cpu": in host memory, page-locked if
    /// the ring's memory is on a GPU; "cuda" or "cuda:1": on that GPU, numbered as in this process.
    std::string device = {};
    f64 wait_s = 5;  ///< longest time in seconds that open() waits for the run, for its supervisor and for
                     ///< each reply
};

/// Options of open_run::latest().
struct latest_options {
    f64 patience_s = 10;  ///< longest time in seconds that a loop waits for a newer frame
};

/// Thrown if no newer frame arrived in time; the text names the cause of the wait.
class nothing_new : public error {
public:
    explicit nothing_new(const std::string& message) : error(exit_code::stage_failed, message) {}
};

/// Numbers of the frames that the port has read but not delivered, by cause.
struct latest_losses {
    u64 revoked = 0;     ///< the lease was revoked: copying took too long
    u64 torn = 0;        ///< the status word or the header did not match; does not occur in a correct run
    u64 tombstones = 0;  ///< frames that were abandoned upstream and have no image
};

/// A complete frame, valid until the next one is requested from its port.
class latest_frame {
public:
    /// The frame's number, times and parameter number, which the functions below return one by one.
    [[nodiscard]] const shm::frame_meta& meta() const noexcept { return facts_; }
    /// Like frame::frame_number() of a stage.
    [[nodiscard]] u64 frame_number() const noexcept { return facts_.frame_number; }
    /// Like frame::ring_sequence() of a stage.
    [[nodiscard]] u64 ring_sequence() const noexcept { return facts_.ring_sequence; }
    [[nodiscard]] f64 time_s() const noexcept { return facts_.time_s; }  ///< frame_number / fps, seconds
    /// The time when the frame's source began it, CLOCK_MONOTONIC in ns.
    [[nodiscard]] u64 born_ns() const noexcept { return facts_.born_ns; }
    /// Capture time in ns, as set by the frame's source; 0: not set.
    [[nodiscard]] u64 capture_ns() const noexcept { return facts_.capture_ns; }
    /// The metadata that the stages have set, read-only.
    [[nodiscard]] frame_metadata metadata() const noexcept { return frame_metadata(facts_.metadata); }
    /// The run's parameters with which the frame was made, in the layout of open_run::parameters(); empty if
    /// the run has none.
    [[nodiscard]] std::span<const std::byte> parameter_bytes() const noexcept { return facts_.parameters; }
    /// Number of that parameter set: 0 when the run starts; each change of the parameters increments it.
    [[nodiscard]] u64 parameter_number() const noexcept { return facts_.parameter_number; }
    [[nodiscard]] const ring::frame_format& format() const noexcept { return planes_.format(); }
    /// Returns the plane of that name, limited to its used extents, as in a stage. Throws config_error if
    /// there is no such plane or its element type differs.
    template <typename T>
    [[nodiscard]] plane_view<T> plane(std::string_view name) const {
        return planes_.plane<T>(name);
    }
    /// The planes, which can also be accessed as records or bytes.
    [[nodiscard]] const input_payload& planes() const noexcept { return planes_; }
    /// The kind of device whose memory holds the planes.
    [[nodiscard]] device_kind where() const noexcept { return where_; }
    /// The frame's stream: work that is enqueued on it is complete before the next frame overwrites this
    /// frame.
    [[nodiscard]] device::queue& queue() const noexcept { return *queue_; }
    /// The cudaStream_t of that queue; null if the frame is in host memory.
    [[nodiscard]] void* stream() const noexcept;
    /// Owns the memory of the planes and their stream. While a copy of this pointer exists the planes stay
    /// unchanged, even after the port or the run has ended, because the port allocates another block of the
    /// same size for the next frame.
    [[nodiscard]] std::shared_ptr<const void> memory() const noexcept { return memory_; }

private:
    friend class latest_port;
    std::shared_ptr<const device::mapping> memory_;
    ring::frame_facts facts_;
    input_payload planes_;
    device_kind where_ = device_kind::cpu;
    device::queue* queue_ = nullptr;
};

/// The newest frames of one output; see the beginning of this file. One thread at a time.
class latest_port {
public:
    latest_port(latest_port&&) noexcept;
    latest_port& operator=(latest_port&&) noexcept;
    ~latest_port();

    /// Returns the newest frame of the output, unless an earlier call has returned it. In that case waits up
    /// to `timeout_s` seconds for the next frame. Returns null if no frame arrived, or if the run is over.
    [[nodiscard]] latest_frame* next(f64 timeout_s);
    /// True if the run is over: no further frame will arrive.
    [[nodiscard]] bool ended() const noexcept;
    /// Describes how the run ended, after it has ended: "exit code 0".
    [[nodiscard]] const std::string& ending() const noexcept;
    /// Counts since the port was opened.
    [[nodiscard]] latest_losses losses() const noexcept;
    /// Returns a clause for a message: the reason why no newer frame arrives, as far as the run's state shows
    /// it.
    [[nodiscard]] std::string waits_for() const;
    /// The stage whose output this port reads.
    [[nodiscard]] const std::string& stage() const noexcept;
    [[nodiscard]] const ring::frame_format& format() const noexcept;

    /// For range-based for: each step returns a newer frame; the sequence ends with the run.
    class iterator {
    public:
        [[nodiscard]] latest_frame& operator*() const noexcept { return *at_; }
        iterator& operator++() {
            at_ = of_->next_or_throw();
            return *this;
        }
        [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return at_ == nullptr; }

    private:
        friend class latest_port;
        explicit iterator(latest_port& of) : of_(&of), at_(of.next_or_throw()) {}
        latest_port* of_;
        latest_frame* at_;
    };
    [[nodiscard]] iterator begin() { return iterator(*this); }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

private:
    friend class open_run;
    struct state;
    explicit latest_port(owned_ptr<state> s);
    [[nodiscard]] latest_frame* next_or_throw();
    owned_ptr<state> state_;
};

/// An open run. Copies share one connection; the ports of the run keep it open.
class open_run {
public:
    /// Returns the newest frames of the output of `stage`. If `stage` is "", returns those of the output that
    /// the last sink reads.
    [[nodiscard]] latest_port latest(const std::string& stage = "", const latest_options& options = {}) const;
    /// Takes the seat of the reading port `stage`: in the pipeline file a stage that has run = "port" and
    /// inputs. Waits up to wait_s if another program holds the seat. Throws config_error, shm_error.
    [[nodiscard]] reader_port reader(const std::string& stage, const port_options& options = {}) const;
    /// Takes the seat of the writing port `stage`: in the pipeline file a stage that has run = "port" and no
    /// inputs. Waits and throws like reader().
    [[nodiscard]] writer_port writer(const std::string& stage, const port_options& options = {}) const;
    /// Returns the schema of the pipeline's parameters: names, types and offsets; empty if the pipeline has
    /// none. Asks the supervisor. Throws shm_error if no reply arrives within wait_s.
    [[nodiscard]] ring::parameter_schema parameters() const;
    /// Returns the name of the reading port that gets every frame of the ring `name`: `name` itself if it is
    /// a reading port, otherwise the only port that has this ring as its only input. Asks the supervisor.
    /// Throws config_error if there is none, or more than one; shm_error if no reply arrives within wait_s.
    [[nodiscard]] std::string reading_port(const std::string& name) const;
    /// Returns the pipeline's frame rate in Hz; 0: the run is not paced. Throws shm_error if the run's shared
    /// memory has no name here.
    [[nodiscard]] f64 fps() const;
    /// Returns the names of the run's stages that have an output.
    [[nodiscard]] std::vector<std::string> stages() const;
    /// The run's name.
    [[nodiscard]] const std::string& name() const noexcept;

private:
    friend open_run open(const std::string& name, const open_options& options);
    explicit open_run(std::shared_ptr<class port_attachment> to) : to_(std::move(to)) {}
    std::shared_ptr<class port_attachment> to_;
};

/// Opens this user's run with that name; if `name` contains a '/', it is the folder of the run.
[[nodiscard]] open_run open(const std::string& name, const open_options& options = {});

}  // namespace carousel
