#pragma once
// The interface of a stage: one class, one process. The runner owns the loop, the slot protocol, the frames
// in flight, heartbeats and crash recovery. A stage only describes what it reads and writes, and enqueues the
// work of one frame.
//
//   #include <carousel/stage.hpp>
//   class my_stage : public carousel::stage { ... };
//   int main(int argc, char** argv) { return carousel::stage_main<my_stage>(argc, argv); }
//
// Life cycle of a stage object:
//   1. It is constructed.
//   2. configure(): gets the settings and the input formats, and returns the output formats. Called in any
//      process (also by `carousel validate`, through `PROGRAM --describe`): use no device, write no files,
//      return quickly. Called again at each start; it must return the same result for the same settings.
//   3. prepare(): called once, with the device: allocate scratch memory, warm up kernels, load assets.
//   4. process(): called once per frame, from one thread: ENQUEUE the work on frame.queue() and return,
//      without waiting for it. The result must be a function of the frame's inputs and of frame.state():
//      members that change from frame to frame are lost when the process is killed. <carousel/cpu.hpp> and
//      <carousel/cuda.hpp> enqueue work.
//   5. finish(): called only if commits_on_host() is true, on the completion thread, after the frame's work
//      is complete and before its commit. All actions of finish() must be idempotent per frame number,
//      because after a crash a frame may be finished twice. A stage without an output may record a hash of
//      its input by frame.set_hash(): the runner keeps the run's ledger for every such stage. With
//      description::finish_threads other than 1, several threads call finish() concurrently, each for another
//      frame, and in no particular order; commits are nevertheless in order. So after a crash a finished
//      frame may be delivered again, even if a later frame was finished too. process() of later frames runs
//      before finish() of this frame: keep data that finish() needs of its frame in frame.local() or in
//      memory of the frame's lane, never in a member that process() sets. finish() is called for a tombstone
//      frame (one that was abandoned) only if description::wants_tombstones is set.
//   6. ready() and committed(), for a stage at the edge of a run: ready() returns whether the next frame of a
//      source is available; committed() is called when a frame is final.
//
// Errors: configure and prepare throw carousel::error (config_error for what the user can correct). An
// exception from process or finish ends the process with exit code 73, or with the code that the error itself
// specifies; this counts as an attempt on the frames in flight. Only a disk_full_error from finish() does not
// end the process: the runner waits for free space and calls finish() again. From prepare() on, an exception
// ends the process at once, without running the stage's destructor.
//
// Crash: a stage may die at any point. The frames of a dead stage are delivered to its successor, and no work
// that the dead stage had enqueued can reach a consumer.

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/errors.hpp"
#include "core/types.hpp"
#include "device/backend.hpp"
#include "stages/sdk/configuration.hpp"
#include "stages/sdk/metadata.hpp"
#include "stages/sdk/payload.hpp"
#include "stages/sdk/process_call.hpp"
#include "stages/sdk/sampled_frame.hpp"

namespace carousel {

using device::device_kind;

/// The argument of prepare(). The environment outlives the last call of the stage object, so a stage may keep
/// a pointer to it.
class environment {
public:
    virtual ~environment() = default;
    /// The device of this stage: allocates and maps memory.
    [[nodiscard]] virtual device::context& context() = 0;
    /// The queue for set-up work in prepare().
    [[nodiscard]] virtual device::queue& queue() = 0;
    /// Mapped memory of an asset, read-only. If the asset is made by another stage, blocks until the asset is
    /// READY; if the wait times out, the error names that stage. On a GPU, an asset in host memory is
    /// returned as a private copy on the device.
    [[nodiscard]] virtual std::span<const std::byte> asset(std::string_view name) = 0;
    /// The run's runtime directory: sockets, state, logs, ledgers. A stage may also store notes for its
    /// successor in this directory. The run removes this directory at the end of the run; files for the user
    /// belong in output_directory().
    [[nodiscard]] virtual std::string runtime_directory() const = 0;
    /// The run's output directory, an absolute path: runs/NAME-DATE in the directory in which the run was
    /// started. No run removes it. All stages share it, and a run that is taken over keeps it. The first call
    /// creates the directory. Any thread. Throws output_error if it can't be created.
    [[nodiscard]] virtual std::string output_directory() const = 0;
    /// The number of this process among the stage's instances, from 0.
    [[nodiscard]] virtual u32 instance() const = 0;
    /// Incarnation number of this seat, from 1. In prepare() of a warm standby the number is 0, because the
    /// standby gets its number when it takes over.
    [[nodiscard]] virtual u32 epoch() const = 0;
    /// Identifies the run: the same for all its processes and for each supervisor that takes it over.
    [[nodiscard]] virtual std::string run_id() const { return {}; }
    /// Number of the first frame in this run's rings. It is above 0 if the run continues a lost run, or if
    /// the rings were rebuilt during the run.
    [[nodiscard]] virtual u64 first_frame() const { return 0; }
    /// Returns a frame number below which every frame is delivered: each sink of this run that has a claim
    /// on such a frame (ledger/ledger.hpp) has committed the frame and recorded it in the sink's ledger.
    /// Reads files; to be called from one thread at a time. Throws output_error.
    [[nodiscard]] virtual u64 delivered_below() { return 0; }
    /// Makes the runner call stage::ready() again. Any thread.
    virtual void wake() noexcept {}
    [[nodiscard]] virtual u32 in_flight()
        const = 0;  ///< maximum number of frames between process() and commit
    /// The pipeline's parameters, whether this stage reads them or not; empty if the pipeline has none.
    [[nodiscard]] virtual const parameter_schema& parameters() const {
        static const parameter_schema nothing;
        return nothing;
    }
};

/// Values that a source may set on a frame instead of the run's values, for example those of a recording.
struct frame_stamp {
    f64 time_s = 0;
    u64 parameter_number = 0;
    std::span<const std::byte> parameters = {};  ///< the frame's parameters, in the layout of the pipeline's
                                                 ///< schema; empty: the frame has the run's parameters
    u64 capture_ns = 0;                          ///< the capture time that was recorded; 0: none was recorded
    bool captured_here = false;                  ///< true: capture_ns is on this machine's clock
    u64 born_ns = 0;  ///< the time when the source began the frame, on this machine's clock; 0: the time when
                      ///< the frame begins here
    std::optional<u64> frame_number = {};  ///< the frame number that the stages downstream get; if there is
                                           ///< none, they get the ring sequence as frame number
};

/// The state of a stage at one frame (description::state). Valid as long as the frame's payloads.
class frame_state {
public:
    frame_state(input_payload previous, output_payload next, bool first, bool gap) noexcept
        : previous_(previous), next_(next), first_(first), gap_(gap) {}
    /// The planes of the state that was committed with the previous frame, read-only. All zeros if first().
    [[nodiscard]] const input_payload& previous() const noexcept { return previous_; }
    /// The planes of this frame's state, which are committed with this frame. All of them must be written.
    [[nodiscard]] const output_payload& next() const noexcept { return next_; }
    /// True if there is no previous state: on frame 0 and after a gap.
    [[nodiscard]] bool first() const noexcept { return first_; }
    /// True if there were earlier frames whose state is lost: the run continues a lost run.
    [[nodiscard]] bool gap() const noexcept { return gap_; }

private:
    input_payload previous_;
    output_payload next_;
    bool first_, gap_;
};

/// One frame in this stage.
class frame {
public:
    virtual ~frame() = default;
    /// The frame's number, times and parameter number, which the functions below return one by one.
    [[nodiscard]] virtual const shm::frame_meta& meta() const noexcept = 0;
    /// The frame's number, from 0: the same in every stage and on every host.
    [[nodiscard]] u64 frame_number() const noexcept { return meta().frame_number; }
    /// The frame's position in the rings of this host, from 0. The position differs from the frame number
    /// only if one stage has instances on two hosts, so that this host processes only a part of another
    /// host's frames.
    [[nodiscard]] virtual u64 ring_sequence() const noexcept { return frame_number(); }
    /// The frame's time in seconds: frame_number / fps, so it depends only on the frame number.
    [[nodiscard]] f64 time_s() const noexcept { return meta().time_s; }
    /// The frame's parameters, as its source has set them. Every stage sees the same values for one frame:
    /// later changes do not affect these values, and they are the same when the frame is processed again
    /// after a crash. Throws config_error unless description::parameters names T.
    template <frame_parameters T>
    [[nodiscard]] T parameters() const {
        const std::span<const std::byte> values = parameter_values(T::type, sizeof(T));
        T out;
        std::memcpy(static_cast<void*>(&out), values.data(), sizeof out);
        return out;
    }
    /// The bytes of the frame's parameter set. Throws config_error unless the set has that type and size.
    [[nodiscard]] virtual std::span<const std::byte> parameter_values(std::string_view type,
                                                                      std::size_t bytes) const = 0;
    /// The bytes of the parameter set without a check of their type, for stages that only forward them. Empty
    /// if there are none.
    [[nodiscard]] virtual std::span<const std::byte> parameter_bytes() const noexcept { return {}; }
    /// Number of the parameter set: 0 when the run starts; each change of the parameters increments it.
    [[nodiscard]] u64 parameter_number() const noexcept { return meta().parameter_number; }
    /// The time when the source began the frame, CLOCK_MONOTONIC in ns; 0: not known.
    [[nodiscard]] u64 born_ns() const noexcept { return meta().born_ns; }
    /// Capture time in ns, the same in every stage. The frame's source sets it, by set_capture_ns() or from a
    /// recording. 0: not set.
    [[nodiscard]] u64 capture_ns() const noexcept { return meta().capture_ns; }
    /// Whether capture_ns() is on this machine's clock or on the clock of a recording.
    [[nodiscard]] shm::capture_clock capture_clock() const noexcept { return meta().clock; }
    /// Small named values that are passed with the frame to all stages downstream. Entries can be added in
    /// process() of a stage with an output.
    [[nodiscard]] virtual frame_metadata metadata() noexcept { return {}; }
    /// The metadata of only one input; metadata() has those of all inputs.
    [[nodiscard]] virtual frame_metadata input_metadata(std::size_t index = 0) noexcept {
        (void)index;
        return {};
    }
    /// The queue on which process() enqueues the frame's work.
    [[nodiscard]] virtual device::queue& queue() noexcept = 0;
    /// The planes of input `index`, in the file's order; read-only.
    [[nodiscard]] virtual input_payload input(std::size_t index = 0) const noexcept = 0;
    /// The newest frame of sampled input `index` (the order of `sampled = ["pose"]` in the file) at the time
    /// when this frame was begun; never waits. Empty if there was no frame. The sampled frame may be a
    /// different one when this frame is processed again after a crash, so results that depend on it can't be
    /// compared between runs.
    [[nodiscard]] virtual sampled_frame sampled(std::size_t index = 0) const {
        (void)index;
        return {};
    }
    /// The newest frame of the sampled input with that name, as written in the pipeline file. Throws
    /// config_error if the file has no such sampled input.
    [[nodiscard]] sampled_frame sampled(std::string_view name) const { return sampled(sampled_index(name)); }
    /// The index of the sampled input of that name. Throws config_error if the file has none.
    [[nodiscard]] virtual std::size_t sampled_index(std::string_view name) const {
        (void)name;
        return 0;
    }
    /// The numbers of the sampled frames that the upstream stage used to make the frame of input `index`;
    /// shm::no_sampled_frame for a sampled input that had no frame.
    [[nodiscard]] virtual std::span<const u64> input_sampled(std::size_t index = 0) const noexcept {
        (void)index;
        return {};
    }
    /// Returns the output at that index of description::outputs. All outputs of a frame have the same
    /// metadata, times and parameters; each has its own used extents.
    [[nodiscard]] virtual output_payload output(std::size_t index = 0) const noexcept = 0;
    /// The output of that name. Throws config_error if there is none.
    [[nodiscard]] output_payload output(std::string_view name) const { return output(output_index(name)); }
    /// The index of the output of that name. Throws config_error if there is none.
    [[nodiscard]] virtual std::size_t output_index(std::string_view name) const {
        return carousel::output_index({}, name);
    }
    /// In process() of a stage with description::state: the state before this frame, and the one that this
    /// frame makes. A frame that is processed again after a crash gets the same previous state. Throws
    /// std::logic_error anywhere else, also in finish(): the next frame may already have begun then.
    [[nodiscard]] virtual frame_state state() const {
        throw std::logic_error(
            "state() was called in a wrong place: it is only for process() of a stage whose configure() sets "
            "description::state");
    }
    [[nodiscard]] virtual u32 lane()
        const noexcept = 0;  ///< < in_flight; scratch memory per lane is never shared
    /// Returns an object that belongs to this frame and exists from process() to finish(). Data that finish()
    /// needs can be stored in this object. A member of the stage is not suitable for such data, because
    /// process() of later frames runs before finish() of this frame. The first call creates the object
    /// (value-initialised); it is destroyed with the frame, and a frame that is processed again after a crash
    /// gets a new object. May be called only in process() and finish() of this frame. Throws std::logic_error
    /// if T differs from that of the first call.
    template <typename T>
    [[nodiscard]] T& local() {
        return local_.get<T>();
    }
    /// Non-empty if the frame is a tombstone, a frame that was abandoned after max_attempts, here or
    /// upstream: it has no payload. process() never gets one; finish() gets one if
    /// description::wants_tombstones is set.
    [[nodiscard]] virtual std::string_view tombstone_reason() const noexcept = 0;
    /// Returns false if a successor of this process now owns the frame (for example because this process was
    /// stopped and resumed late). Call is_owned() immediately before an effect outside the ring that can't be
    /// undone, such as renaming a file into place. After is_owned() has returned false, such a rename could
    /// overwrite the successor's file.
    [[nodiscard]] virtual bool is_owned() const noexcept { return true; }
    /// In finish() of a stage without an output: records a hash of this frame's input in the ledger. Equal
    /// runs then have equal hashes (`image_hash` of the report), and `carousel chaos` compares them. If a
    /// stage does not call this function, its frames are only counted. `name` identifies the hash function
    /// (one line of at most 100 bytes): hashes of different names are never compared. <carousel/hash.hpp>
    /// computes one on the device that holds the image.
    virtual void set_hash(u64 hash, std::string_view name) noexcept { (void)hash, (void)name; }
    /// Records a hash whose definition is known only to the stage, under the name "own".
    void set_hash(u64 hash) noexcept { set_hash(hash, "own"); }
    /// In finish(): calls body(k) for each k below `parts` and returns when all calls have returned. If the
    /// stage has several finish threads (description::finish_threads), the threads that have no frame to
    /// finish run some of the parts. If few frames are in flight, this shortens the time per frame. The
    /// assignment of parts to threads and their order are unspecified: the result must not depend on them.
    /// Exceptions from `body` propagate.
    virtual void in_parts(u32 parts, const std::function<void(u32 part)>& body) {
        for (u32 k = 0; k < parts; ++k) body(k);
    }
    /// In finish(): marks this frame as waiting for another host. The mark lasts until this function is
    /// called with false, or until finish() returns. Such a wait is not treated as a hang: no timeout of this
    /// process runs during the wait, and `carousel ps` shows its cause.
    virtual void wait_for_link(bool waits) { (void)waits; }
    /// In finish() of a stage with one output that commits on the host: replaces the metadata of the frame
    /// and the used extents of its planes, which process() has set. Meant for data that becomes known only
    /// in finish(). Throws std::logic_error anywhere else.
    virtual void carry(std::span<const std::byte> metadata, const shm::used_extents& used) {
        (void)metadata, (void)used;
        throw std::logic_error(
            "carry() was called in a wrong place: it is only for finish() of a stage with one output");
    }
    /// In process() of a source: gives the frame its own time and parameters, which replace those of the run.
    /// A source must call stamp() either for every frame or for no frame. `with` must be a function of the
    /// frame number. Throws config_error if the size of the parameters differs from that of the pipeline's
    /// parameters.
    virtual void stamp(const frame_stamp& with) {
        (void)with;
        throw std::logic_error(
            "stamp() was called in a wrong place: it is only for process() of a source (a stage without "
            "inputs)");
    }
    /// In process() of a source: sets the frame's capture time, CLOCK_MONOTONIC of this machine in ns. The
    /// report contains the latency from the capture time to the sinks (from_capture_ms).
    virtual void set_capture_ns(u64 ns) {
        (void)ns;
        throw std::logic_error(
            "set_capture_ns() was called in a wrong place: it is only for process() of a source (a stage "
            "without inputs)");
    }
    /// In process() of a source: reports that this frame was abandoned at its origin. The frame continues as
    /// a tombstone, like a frame that is abandoned here; its output need not be written.
    virtual void pass_tombstone() {
        throw std::logic_error(
            "pass_tombstone() was called in a wrong place: it is only for process() of a source (a stage "
            "without inputs)");
    }
    /// In process() of a source that sets description::ends: reports that the stream ends before this frame:
    /// neither this frame nor a later frame exists. Work enqueued for it is discarded. The call must depend
    /// only on the frame number: a successor that processes this frame, or a later one, must also end the
    /// stream. If end_stream() is called anywhere else, it throws an exception, which ends the process like
    /// any other exception.
    virtual void end_stream() {
        throw std::logic_error(
            "end_stream() was called in a wrong place: it is only for process() of a source (a stage without "
            "inputs)");
    }

protected:
    /// Called before process(): destroys the object of the frame that used this lane before.
    void clear_local() noexcept { local_.clear(); }

private:
    frame_local local_;
};

/// Base class of a stage: derive from it and pass the class to stage_main().
class stage {
public:
    /// The environment of prepare() can be used until this destructor has returned.
    virtual ~stage() = default;
    /// Returns what the stage reads and writes with these settings and inputs. Throws config_error or
    /// settings_error for what the user can correct. Called in any process; see the beginning of this file.
    [[nodiscard]] virtual description configure(const configuration& with) = 0;
    /// Called once per object, before the first frame: allocates memory and loads assets. May block.
    virtual void prepare(environment&) {}
    /// Fills the asset `name` (of description::makes). Called at most once per run, in one process. May
    /// block.
    virtual void load_asset(std::string_view name, std::span<std::byte> memory, environment& env) {
        (void)name, (void)memory, (void)env;
    }
    /// Called once per frame, from one thread: enqueues the work of `f` on f.queue() and returns without
    /// waiting for it. An exception ends the process and counts as an attempt on the frame.
    virtual void process(frame& f) = 0;
    /// Returns true if finish() must run before each commit.
    [[nodiscard]] virtual bool commits_on_host() const { return false; }
    /// Called after the work of `f` is complete and before its commit, if commits_on_host() is true: on the
    /// completion thread, or on several threads (description::finish_threads). Must be idempotent per frame
    /// number.
    virtual void finish(frame& f) { (void)f; }
    /// Returns whether frame `ring_sequence`, the next one, may begin. Called on the thread of process()
    /// before anything is claimed, possibly several times per frame, also for tombstone frames. No frame
    /// begins while this function returns false. Meant for a source whose frames come from outside: while the
    /// source waits for a frame, no timeout runs and no attempt is counted. environment::wake() triggers
    /// another call; without it the next call is after 100 ms. `done_below`: for a source, the number of the
    /// first frame that is not committed; for other stages 0.
    [[nodiscard]] virtual bool ready(u64 ring_sequence, u64 done_below) {
        (void)ring_sequence, (void)done_below;
        return true;
    }
    /// Called after each commit, on the committing thread, in order: the frame will not be processed again.
    virtual void committed(u64 ring_sequence) { (void)ring_sequence; }
};

/// The main() of a stage program: attaches to its supervisor and runs the stage returned by `make()` until
/// the end of the run.
int stage_main(int argc, char** argv, std::unique_ptr<stage> (*make)());

/// Like the function above, for a stage class that has a default constructor:
///   int main(int argc, char** argv) { return carousel::stage_main<my_stage>(argc, argv); }
template <typename Stage>
int stage_main(int argc, char** argv) {
    return stage_main(argc, argv, []() -> std::unique_ptr<stage> { return std::make_unique<Stage>(); });
}

}  // namespace carousel
