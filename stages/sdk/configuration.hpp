#pragma once
// The input of configure() and its result: plain data, created and read in any process.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "core/runs_on.hpp"
#include "core/types.hpp"
#include "frame/frame_format.hpp"
#include "parameters/parameter_schema.hpp"

namespace carousel {

// A stage's own keys of the pipeline file, typed. configure() must read every key: a key that it has not read
// is taken for a typing error of the user and is refused with "did you mean".

/// A wrong key or value of a stage's settings; the supervisor adds file:line:col from the key.
class settings_error : public config_error {
public:
    settings_error(std::string key, const std::string& message)
        : config_error(message), key_(std::move(key)) {}
    [[nodiscard]] const std::string& key() const noexcept { return key_; }

private:
    std::string key_;
};

/// The settings of one stage. Reading a key marks it as supported. One thread at a time.
class settings {
public:
    settings();
    ~settings();
    settings(settings&&) noexcept;
    settings& operator=(settings&&) noexcept;
    /// Creates settings from a JSON object. Throws config_error.
    [[nodiscard]] static settings from_json(std::string_view text);

    // Each function returns the value or the default; throws settings_error for a wrong type or a value
    // outside [low, high].
    [[nodiscard]] i64 integer(std::string_view key, i64 fallback, i64 low, i64 high) const;
    [[nodiscard]] f64 number(std::string_view key, f64 fallback, f64 low, f64 high) const;
    [[nodiscard]] bool flag(std::string_view key, bool fallback) const;
    [[nodiscard]] std::string text(std::string_view key, std::string_view fallback) const;
    /// Returns one of `choices`; refuses others with "did you mean".
    [[nodiscard]] std::string choice(std::string_view key, std::string_view fallback,
                                     const std::vector<std::string>& choices) const;
    /// Returns the entries of a table, e.g. options = { preset = "fast", crf = 18 }, with numbers and flags
    /// as texts (18, true); empty if the file does not have the key. Throws settings_error for other values.
    [[nodiscard]] std::map<std::string, std::string> texts(std::string_view key) const;
    /// Returns whether the file has the key. This does not count as reading the key.
    [[nodiscard]] bool has(std::string_view key) const;
    /// Throws settings_error for the first key that has not been read.
    void refuse_unread() const;

private:
    struct state;
    std::unique_ptr<state> state_;
};

using ring::element;
using ring::frame_format;
using ring::frame_parameters;
using ring::parameter;
using ring::parameter_kind;
using ring::parameter_schema;
using ring::plane;
using ring::require_format;

/// One input as passed to configure().
struct input_description {
    std::string stage;    ///< the producer's name, or STAGE.OUTPUT for an output after its first
    frame_format format;  ///< laid out (frame_format::lay_out)
};

/// A block of memory that all frames share (a mesh, textures, weights): created once, mapped by every stage
/// that names it.
struct asset_description {
    std::string name;
    u64 bytes = 0;
};

/// One output of a stage: its format, and the name by which readers refer to it. If a stage has only one
/// output, this output needs no name.
struct output_description : frame_format {
    output_description(frame_format format) : frame_format(std::move(format)) {}  // NOLINT: as it is
    output_description(std::string named, frame_format format)
        : frame_format(std::move(format)), name(std::move(named)) {}
    output_description(std::string type_of, std::vector<plane> planes_of, std::map<std::string, double> all)
        : frame_format{std::move(type_of), std::move(planes_of), std::move(all)} {}
    std::string name;  ///< 1 to 24 letters, digits, - and _
    bool operator==(const output_description&) const = default;
};
inline constexpr std::size_t max_stage_outputs = 4, max_output_name = 24;

/// The argument of stage::configure().
struct configuration {
    std::string stage;          ///< this stage's name in the pipeline file
    u32 width = 0, height = 0;  ///< the pipeline's image size in pixels
    /// The stage's own keys. All of them must be read, because unread keys are refused.
    const carousel::settings* settings = nullptr;
    std::vector<input_description> inputs = {};  ///< in the file's order; empty for a source
    f64 fps = 0;                                 ///< frames per second of the pipeline; 0: unlimited
    std::string device = "auto";  ///< the device requested in the file for this stage: auto, cpu, cuda:N
    std::string folder = {};      ///< absolute path of the pipeline file's folder, to which relative paths
                                  ///< refer
    /// The inputs of the key `sampled`, in the file's order. If a sampled input comes from a stage
    /// downstream of this stage, its format has no planes here, because it may depend on this stage's
    /// output.
    std::vector<input_description> sampled = {};

    /// Returns a path from the settings as an absolute one: relative paths are resolved against the pipeline
    /// file's folder.
    [[nodiscard]] std::string path(std::string_view written) const;
};

/// A plane that a stage reads from one of its inputs.
struct plane_read {
    std::string plane;
    std::optional<element> type = {};  ///< none: any element type
    std::size_t input = 0;
};

/// The result of stage::configure(): the inputs, outputs and requirements of the stage.
struct description {
    /// The outputs of the stage, one ring per output; empty: none (a sink). At most 4; if there are several,
    /// each has a name: `.outputs = {{"color", image_format(w, h)}, {"depth", depth_format(w, h)}}`. In a
    /// pipeline file, the stage's name alone means its first output, and STAGE.OUTPUT means the output of
    /// that name.
    std::vector<output_description> outputs = {};
    /// The planes that the stage remembers from frame to frame, for frame::state(). Only for a stage with one
    /// instance; a source needs an output, too. They are one more ring, STAGE.state, and count as one of the
    /// 4 outputs.
    std::vector<plane> state = {};
    std::vector<asset_description> makes = {};  ///< assets this stage fills in load_asset()
    std::vector<std::string> uses = {};         ///< assets of other stages that it maps
    /// Planes of its inputs that the stage reads, optional: `.reads = {{"color", element::u8_}}`. `carousel
    /// validate` and each start refuse inputs without them; a plane that is not listed is checked when a
    /// frame's plane<T>() is called.
    std::vector<plane_read> reads = {};
    /// T::schema() if the stage reads frame::parameters<T>(). All stages of a pipeline that read parameters
    /// name one type, and each the fields that it reads.
    parameter_schema parameters = {};
    runs_on device = runs_on::any;  ///< where it can run
    bool ends = false;              ///< a source that may call frame::end_stream()
    /// The stage computes nothing: it only forwards frames between this run and another place. So a crash of
    /// this stage never counts as an attempt on a frame, whatever max_attempts is.
    bool forwards_frames = false;
    /// finish() is also called for tombstone frames: frames that were abandoned, here or upstream, and that
    /// have no payload (frame::tombstone_reason()). If this is false, the runner records and commits a
    /// tombstone itself: it calls neither process() nor finish() for the tombstone, but it calls committed().
    bool wants_tombstones = false;
    /// The stage can have sampled inputs (the key `sampled`), which it reads by frame::sampled(). Other
    /// stages are refused if the file gives them sampled inputs.
    bool accepts_sampled_inputs = false;
    /// If true, the stage's inputs and other stages' assets are also mapped for writing. Meant for a stage
    /// whose library can't read from read-only memory. A wild write by this stage can then harm other
    /// stages; the plan and the log report this.
    bool writable_inputs = false;
    /// Every frame has the same work: process() launches the same kernels in the same order with the same
    /// sizes, each by carousel::cuda::launch(), and enqueues nothing else; only the arguments of the kernels
    /// (slots, parameters) differ. With the pipeline's key `graphs` the work is then one graph launch per
    /// frame. If the work of a frame differs from that of the first frame, the process ends with a message
    /// that has the frame's number. No effect on the CPU.
    bool same_work = false;
    /// The stage's outputs, and its state, are the same bytes on the CPU as on a GPU. A run may then move it
    /// to the CPU if the GPU fails (the key `fallback`), and no picture changes.
    bool bit_equal = false;
    /// If true, the stage accesses rings on another GPU only through a mapping. If false, the runner may copy
    /// a slot of such a ring to the stage's own GPU, and the copy runs on the frame's queue. A stage sets
    /// this if it can't order all of its work after the work on that queue.
    bool maps_peer_rings = false;
    /// Number of threads that call finish() concurrently, each for another frame; useful for a stage whose
    /// host work per frame takes longer than the frame interval. The stage must guard its shared state. 0:
    /// one per core that the process may run on. At most in_flight frames are finished at the same time; if
    /// there are more threads, the additional threads help with these frames (frame::in_parts). A stage in a
    /// latest group uses one thread, and logs a warning if it requests more.
    u32 finish_threads = 1;
};

inline constexpr std::string_view state_output = "state";  ///< the name of a stage's ring of states
/// Throws config_error unless `d` has at most 4 outputs, which are named if there are several.
void check_outputs(const description& d);
/// Returns the outputs with the ring of states, if there is one, as the last of them; all laid out.
[[nodiscard]] std::vector<output_description> all_outputs(const description& d);
/// Throws config_error if an input lacks a plane that description::reads lists for it, or has that plane with
/// another element type.
void check_reads(const description& d, const configuration& with);
/// Returns the index of the output of that name. If there is none, throws config_error, which lists the
/// existing names.
[[nodiscard]] std::size_t output_index(const std::vector<output_description>& outputs, std::string_view name);

/// Returns the only output of `d`, or null if `d` is a sink. For callers that support only one output: throws
/// config_error if there are several.
[[nodiscard]] const frame_format* output_of(const description& d);
[[nodiscard]] frame_format* output_of(description& d);

// The output directory of a run: runs/NAME-DATE in the directory in which the run was started. A run without
// files leaves no directory, so the first stage process that requests it creates it.

/// Creates the directory and its parents unless they exist, and returns `path`. Several processes may call it
/// concurrently. Throws disk_full_error or output_error; `path` is empty if the run has no output directory.
std::string make_output_directory(const std::string& path);

}  // namespace carousel
