#pragma once
// The interface of a stage: one class, one process. The runner owns the loop, the slot protocol, the frames
// in flight, heartbeats and crash behaviour. A stage only says what it reads and writes, and enqueues the
// work of one frame.
//
//   #include <carousel/stage.hpp>
//   class my_stage : public carousel::stage { ... };
//   int main(int argc, char** argv) { return carousel::stage_main<my_stage>(argc, argv); }
//
// Life of a stage object:
//   1. constructed;
//   2. configure(): settings and input formats in, output format out. Called in any process (also by
//   `carousel validate`,
//      through `PROGRAM --describe`): no device, no files written, quick. Called again at each (re)start; it
//      must give the same answer for the same settings.
//   3. prepare(): once, with the device: allocate scratch, warm kernels up, load assets.
//   4. process(): once per frame, from one thread: ENQUEUE the work on frame.queue() and return. Don't wait
//   for it.
//      It must be a function of the frame's inputs: what is kept between frames is lost when the process is
//      killed. <carousel/cpu.hpp> and <carousel/cuda.hpp> say how work is enqueued.
//   5. finish(): only if commits_on_host(): called behind the frame's completion, on the completion thread,
//   before the commit.
//      Everything it does must be idempotent on the frame's number: after a crash a frame may be finished
//      twice. A stage without an output may name what it got by frame.set_hash(): the runner keeps the run's
//      ledger for every such stage. With description::finish_threads above one (or 0) it is called by several
//      threads at once, each for another frame, and in no order; commits are in order all the same. So a
//      frame that has been finished may be delivered again though a later one was finished, too.
//      process() of later frames runs before it: what finish() needs of its frame lies in frame.local() or in
//      memory of the frame's lane, never in a member that process() sets. A tombstone (a frame that was given
//      up) gets here only if description::wants_tombstones is set.
//   6. A stage at the edge of a run: ready() says when a source's next frame is there, committed() that a
//   frame is beyond recall.
// Errors: configure and prepare throw carousel::error (config_error for what the user can mend). An exception
// from process or finish ends the process (exit code 73, or the error's own), which counts as an attempt on
// the frames in flight. Only a disk_full_error from finish doesn't: the runner waits for room, and calls it
// again. From prepare() on an exception ends the process at once: the stage's destructor doesn't run. Crash:
// a stage may die anywhere. Its frames go to its successor, and nothing that it had enqueued can reach a
// consumer.

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/disk_full.hpp"
#include "core/errors.hpp"
#include "core/types.hpp"
#include "device/backend.hpp"
#include "stages/sdk/configuration.hpp"
#include "stages/sdk/formats.hpp"
#include "stages/sdk/frame_local.hpp"
#include "stages/sdk/metadata.hpp"
#include "stages/sdk/payload.hpp"
#include "stages/sdk/sampled_frame.hpp"
#include "stages/sdk/settings.hpp"

namespace carousel {

using device::device_kind;

/// What prepare() gets. It outlives the stage object's last call, so a stage may keep a pointer to it.
class environment {
public:
    virtual ~environment() = default;
    [[nodiscard]] virtual device::context& context() = 0;
    [[nodiscard]] virtual device::queue& queue() = 0;
    /// Mapped memory of an asset, for reading. For an asset of another stage: blocks until it is READY
    /// (bounded, names the culprit). On a GPU whose asset lives in host memory, a private copy on the device.
    [[nodiscard]] virtual std::span<const std::byte> asset(std::string_view name) = 0;
    /// The run's runtime directory: sockets, state, logs, ledgers. The run removes it at its end; files that
    /// a user is to keep belong in output_directory(). For notes to the stage's next process.
    [[nodiscard]] virtual std::string runtime_directory() const = 0;
    /// The run's output directory, an absolute path: runs/NAME-DATE in the directory in which the run was
    /// started. No run removes it. All stages share it, and a run that is taken over keeps it. The first call
    /// creates the directory. Any thread. Throws output_error if it can't be created.
    [[nodiscard]] virtual std::string output_directory() const = 0;
    [[nodiscard]] virtual u32 instance() const = 0;
    /// Incarnation of this seat, from 1. 0 in the prepare() of a warm standby, which gets its own when it
    /// takes over.
    [[nodiscard]] virtual u32 epoch() const = 0;
    /// Which run this is: the same for all its processes and for each supervisor that takes it over.
    [[nodiscard]] virtual std::string run_id() const { return {}; }
    /// Where this run's rings begin: above 0 where it goes on for one that was lost, or where they
    /// were made anew in mid-run.
    [[nodiscard]] virtual u64 first_frame() const { return 0; }
    /// Every frame below is committed by each sink of this run that counts, and stands in its ledger. Reads
    /// files; one thread at a time. Throws output_error.
    [[nodiscard]] virtual u64 delivered_below() { return 0; }
    /// From any thread: the runner asks stage::ready() again.
    virtual void wake() noexcept {}
    [[nodiscard]] virtual u32 in_flight() const = 0;  ///< frames that may be between process() and commit
    /// The pipeline's parameters, whether this stage reads them or not; none: it has none.
    [[nodiscard]] virtual const parameter_schema& parameters() const {
        static const parameter_schema nothing;
        return nothing;
    }
};

/// What a source may give a frame in place of what the run would: of a recording, say.
struct frame_stamp {
    f64 time_s = 0;
    u64 parameter_number = 0;
    std::span<const std::byte> parameters = {};  ///< of the pipeline's schema; empty: those of the run
    u64 capture_ns = 0;                          ///< as it was recorded; 0: it was not
    bool captured_here = false;                  ///< capture_ns is of this machine's clock
    u64 born_ns = 0;  ///< when its source began it, by this machine's clock; 0: when it is begun here
    std::optional<u64> frame_number = {};  ///< for the stages downstream; none: the ring sequence
};

/// One frame on its way through this stage.
class frame {
public:
    virtual ~frame() = default;
    /// The frame's number, from 0: the same in every stage and on every host.
    [[nodiscard]] virtual u64 frame_number() const noexcept = 0;
    /// The frame's position in the rings of this host, from 0. It differs from the frame number only where
    /// this host works on some of another host's frames (instances of one stage on two hosts).
    [[nodiscard]] virtual u64 ring_sequence() const noexcept { return frame_number(); }
    /// frame_number / fps: a function of the frame number alone
    [[nodiscard]] virtual f64 time_s() const noexcept = 0;
    /// The frame's parameters, as its source has stamped them: every stage sees the same for one frame,
    /// whatever is set meanwhile, and also when the frame is made again after a death. Throws config_error
    /// unless description::parameters names T.
    template <frame_parameters T>
    [[nodiscard]] T parameters() const {
        const std::span<const std::byte> values = parameter_values(T::type, sizeof(T));
        T out;
        std::memcpy(static_cast<void*>(&out), values.data(), sizeof out);
        return out;
    }
    /// The bytes of the frame's set, which has that type and size. Throws config_error when it hasn't.
    [[nodiscard]] virtual std::span<const std::byte> parameter_values(std::string_view type,
                                                                      std::size_t bytes) const = 0;
    /// The same bytes, whatever their type: for those who hand them on. Empty where there are none.
    [[nodiscard]] virtual std::span<const std::byte> parameter_bytes() const noexcept { return {}; }
    /// which set: 0 at the start, one more with each change
    [[nodiscard]] virtual u64 parameter_number() const noexcept = 0;
    /// When its source began it, CLOCK_MONOTONIC; 0: not known.
    [[nodiscard]] virtual u64 born_ns() const noexcept { return 0; }
    /// When what it shows happened, as its source has said (set_capture_ns, or a recording): the same in
    /// every stage. 0: it has not said.
    [[nodiscard]] virtual u64 capture_ns() const noexcept { return 0; }
    /// Whether that is of this machine's clock, or of a recording's.
    [[nodiscard]] virtual shm::capture_clock capture_clock() const noexcept {
        return shm::capture_clock::none;
    }
    /// Small named values that travel with the frame to all stages behind; to be added to in process() of a
    /// stage with an output.
    [[nodiscard]] virtual frame_metadata metadata() noexcept { return {}; }
    /// Those of one input alone, where metadata() has those of all.
    [[nodiscard]] virtual frame_metadata input_metadata(std::size_t index = 0) noexcept {
        (void)index;
        return {};
    }
    [[nodiscard]] virtual device::queue& queue() noexcept = 0;
    [[nodiscard]] virtual input_payload input(std::size_t index = 0) const noexcept = 0;
    /// The newest frame of a sampled input (`sampled = ["pose"]` in the file) when this frame was begun,
    /// which waits for none: by its index there. Empty while there was none. It is another one when this
    /// frame is made again after a death, so what is made of it can't be compared between runs.
    [[nodiscard]] virtual sampled_frame sampled(std::size_t index = 0) const {
        (void)index;
        return {};
    }
    /// By its name, as the file writes it. Throws config_error where the file names no such one.
    [[nodiscard]] sampled_frame sampled(std::string_view name) const { return sampled(sampled_index(name)); }
    [[nodiscard]] virtual std::size_t sampled_index(std::string_view name) const {
        (void)name;
        return 0;
    }
    /// Which frames of its own sampled inputs an input was made with, or shm::no_sampled_frame.
    [[nodiscard]] virtual std::span<const u64> input_sampled(std::size_t index = 0) const noexcept {
        (void)index;
        return {};
    }
    /// By its index in description::outputs. All outputs of a frame have the same metadata, times and
    /// parameters; what of its planes is in use each says for itself.
    [[nodiscard]] virtual output_payload output(std::size_t index = 0) const noexcept = 0;
    /// By its name there. Throws config_error when there is none of that name.
    [[nodiscard]] output_payload output(std::string_view name) const { return output(output_index(name)); }
    [[nodiscard]] virtual std::size_t output_index(std::string_view name) const {
        return carousel::output_index({}, name);
    }
    [[nodiscard]] virtual u32 lane() const noexcept = 0;  ///< < in_flight; scratch per lane is never shared
    /// An object of this frame, which travels from process() to finish(): the place for what finish() needs.
    /// A member of the stage is not, because process() of later frames runs before finish() of this one. The
    /// first call creates it (value-initialised); it ends with the frame, and a frame that is processed again
    /// after a death gets a new one. In process() and finish() of this frame alone. Throws std::logic_error
    /// for a T other than that of the first call.
    template <typename T>
    [[nodiscard]] T& local() {
        return local_.get<T>();
    }
    /// Non-empty when the frame is a tombstone, a frame that was given up after max_attempts, here or
    /// upstream: it has no payload. process() never gets one; finish() gets one if
    /// description::wants_tombstones is set.
    [[nodiscard]] virtual std::string_view tombstone_reason() const noexcept = 0;
    /// False once this process has a successor, that has got the frame instead (this one was stopped, say,
    /// and goes on late). Asked last before something leaves the ring for good: a file that is put in its
    /// place now may be written over the successor's.
    [[nodiscard]] virtual bool is_owned() const noexcept { return true; }
    /// In finish() of a stage without an output: a hash of what this frame brought, for the ledger. Equal
    /// runs have equal hashes then
    /// (`image_hash` of the report), and `carousel chaos` compares them. Without it frames are counted only.
    /// `name` says what it is a hash of (one line of at most 100 bytes): hashes of two names are never
    /// compared. <carousel/hash.hpp> has one that is made where the picture lies.
    virtual void set_hash(u64 hash, std::string_view name) noexcept { (void)hash, (void)name; }
    /// A hash of the stage's own: "own", of which nothing but the stage knows the definition.
    void set_hash(u64 hash) noexcept { set_hash(hash, "own"); }
    /// In finish(): calls body(k) for each k below `parts` and returns when all are done. Where the stage has
    /// several finish threads (description::finish_threads), those that have no frame to finish take parts,
    /// so that one frame is done sooner where few are in flight. Which thread does which part, and in what
    /// order, is not told: what comes out must not depend on it. What a body throws comes out of this.
    virtual void in_parts(u32 parts, const std::function<void(u32 part)>& body) {
        for (u32 k = 0; k < parts; ++k) body(k);
    }
    /// In finish(): true until false, or until finish() returns, this frame waits for another host. That is
    /// no hang: no clock of this process runs meanwhile, and `carousel ps` says what it waits for.
    virtual void wait_for_link(bool waits) { (void)waits; }
    /// In finish() of a stage with one output that commits on the host: the frame's metadata, and what of its
    /// planes is in use, in place of what process() has left: for who knows only now what another process has
    /// made. Throws std::logic_error anywhere else.
    virtual void carry(std::span<const std::byte> metadata, const shm::used_extents& used) {
        (void)metadata, (void)used;
        throw std::logic_error("carry() is for finish() of a stage with one output, in a run");
    }
    /// In process() of a source, for each frame or for none: its time and parameters, in place of the run's.
    /// It must be a function of the frame number. Throws config_error for parameters of another size than the
    /// pipeline's.
    virtual void stamp(const frame_stamp& with) {
        (void)with;
        throw std::logic_error("stamp() is for process() of a source: a stage without inputs, in a run");
    }
    /// In process() of a source: when what the frame shows happened, CLOCK_MONOTONIC of this machine. The
    /// report says how long frames took from there to their sinks (from_capture_ms).
    virtual void set_capture_ns(u64 ns) {
        (void)ns;
        throw std::logic_error(
            "set_capture_ns() is for process() of a source: a stage without inputs, in a run");
    }
    /// In process() of a source: this frame was given up where it comes from. It goes on void, as a frame
    /// does that is given up here; nothing need be written into its output.
    virtual void pass_tombstone() {
        throw std::logic_error(
            "pass_tombstone() is for process() of a source: a stage without inputs, in a run");
    }
    /// In process() of a source that has said description::ends: the stream ends before this frame, which
    /// does not exist, and neither does any later one. What is enqueued for it is thrown away. It must be a
    /// function of the frame number: whoever is asked for this frame again, or for a later one, says the
    /// same. Anywhere else it throws, which ends the process as any exception does.
    virtual void end_stream() {
        throw std::logic_error("end_stream() is for process() of a source: a stage without inputs, in a run");
    }

protected:
    /// Before process(): the object of the frame that used this one before ends.
    void clear_local() noexcept { local_.clear(); }

private:
    frame_local local_;
};

/// What a stage program is: derive from it, and give the class to stage_main().
class stage {
public:
    virtual ~stage() = default;
    [[nodiscard]] virtual description configure(const configuration& with) = 0;
    virtual void prepare(environment&) {}
    /// Fills the asset `name` (of description::makes). Called at most once per run, in one process. May
    /// block.
    virtual void load_asset(std::string_view name, std::span<std::byte> memory, environment& env) {
        (void)name, (void)memory, (void)env;
    }
    virtual void process(frame& f) = 0;
    [[nodiscard]] virtual bool commits_on_host() const { return false; }
    virtual void finish(frame& f) { (void)f; }
    /// May frame `ring_sequence`, which would be the next one, be begun? Asked on the thread of process(),
    /// before anything is taken, and perhaps more than once for one frame; of void frames, too. While the
    /// answer is no nothing is begun. For a source whose frames come from outside: no clock runs then, and no
    /// attempt counts; environment::wake() has it asked again, without that it is after 100 ms. A source is
    /// also told how far all numbers are done: each below `done_below` is committed, and that number is not
    /// (else 0).
    [[nodiscard]] virtual bool ready(u64 ring_sequence, u64 done_below) {
        (void)ring_sequence, (void)done_below;
        return true;
    }
    /// Behind the commit of a frame, on the thread that commits, in order: nobody makes this frame again.
    virtual void committed(u64 ring_sequence) { (void)ring_sequence; }
};

/// The whole main() of a stage program: attaches to its supervisor and runs `make()`'s stage until the end of
/// the run.
int stage_main(int argc, char** argv, std::unique_ptr<stage> (*make)());

/// The same for a class that needs no arguments:
///   int main(int argc, char** argv) { return carousel::stage_main<my_stage>(argc, argv); }
template <typename Stage>
int stage_main(int argc, char** argv) {
    return stage_main(argc, argv, []() -> std::unique_ptr<stage> { return std::make_unique<Stage>(); });
}

}  // namespace carousel
