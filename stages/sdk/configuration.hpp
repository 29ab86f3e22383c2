#pragma once
// What a stage is told before anything starts, and what it answers: plain data, made and read in any process.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/runs_on.hpp"
#include "core/types.hpp"
#include "ring/frame_format.hpp"
#include "ring/parameter_schema.hpp"
#include "stages/sdk/settings.hpp"

namespace carousel {

using ring::element;
using ring::frame_format;
using ring::frame_parameters;
using ring::parameter;
using ring::parameter_kind;
using ring::parameter_schema;
using ring::plane;
using ring::require_format;

/// One input as configure() sees it.
struct input_description {
    std::string stage;    ///< the producer's name; behind its first output STAGE.OUTPUT
    frame_format format;  ///< laid out
};

/// A block of memory that all frames share (a mesh, textures, weights): made once, mapped by every stage that
/// names it.
struct asset_description {
    std::string name;
    u64 bytes = 0;
};

/// One output: a format, and what readers call it. A stage with one output needs no name for it.
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

struct configuration {
    std::string stage;          ///< this stage's name in the pipeline file
    u32 width = 0, height = 0;  ///< the pipeline's picture size in pixels
    /// the stage's own keys; read them all, unread ones are refused
    const carousel::settings* settings = nullptr;
    std::vector<input_description> inputs = {};  ///< in the file's order; empty for a source
    f64 fps = 0;                                 ///< frames per second of the pipeline; 0: as fast as it goes
    std::string device = "auto";                 ///< as the file asks for this stage: auto, cpu, cuda:N
    std::string folder = {};  ///< of the pipeline file, absolute: relative paths start here
    /// Of the key `sampled`, in the file's order. Those of stages behind this one have a format without
    /// planes: theirs may hang on this stage's.
    std::vector<input_description> sampled = {};

    /// A path among the settings, as an absolute one: relative paths are taken from the pipeline file's
    /// folder.
    [[nodiscard]] std::string path(std::string_view written) const;
};

/// A plane that a stage reads of an input.
struct plane_read {
    std::string plane;
    std::optional<element> type = {};  ///< none: any element type
    std::size_t input = 0;
};

struct description {
    /// What the stage writes, a ring each; empty: nothing (a sink). At most 4; several have a name each:
    /// `.outputs = {{"color", image_format(w, h)}, {"depth", depth_format(w, h)}}`. A pipeline file reads the
    /// first by the stage's name alone, each by STAGE.OUTPUT.
    std::vector<output_description> outputs = {};
    std::vector<asset_description> makes = {};  ///< assets this stage fills in load_asset()
    std::vector<std::string> uses = {};         ///< assets of other stages that it maps
    /// Planes that it reads of its inputs, optional: `.reads = {{"color", element::u8_}}`. `carousel
    /// validate` and each start refuse inputs without them; a plane that is not listed is checked when a
    /// frame's plane<T>() is called.
    std::vector<plane_read> reads = {};
    /// T::schema() if it reads frame::parameters<T>(); all stages of a pipeline that read some name the same.
    parameter_schema parameters = {};
    runs_on device = runs_on::any;  ///< where it can run
    bool ends = false;              ///< a source that may call frame::end_stream()
    /// It hands frames on between this run and somewhere else and computes nothing: none of its deaths is
    /// held against a frame, whatever max_attempts says.
    bool forwards_frames = false;
    /// finish() also gets tombstone frames: frames that were given up, here or upstream, and that have no
    /// payload (frame::tombstone_reason()). Without it the runner records and commits a tombstone itself, and
    /// neither process() nor finish() is called for it; committed() is.
    bool wants_tombstones = false;
    /// It can have sampled inputs (the key `sampled`), which it reads by frame::sampled(); of any other stage
    /// they are refused.
    bool accepts_sampled_inputs = false;
    /// Its inputs and the assets of others are to be mapped for writing, too: what it reads them with can't
    /// be content with less. A stray write of it can harm other stages then; the plan and the log say so.
    bool writable_inputs = false;
    /// The work of each frame is alike: process() launches the same kernels in the same order with the same
    /// sizes, each by carousel::cuda::launch(), and enqueues nothing else; what differs (slots, parameters)
    /// are their arguments. As a graph (the pipeline's key graphs) that is one launch a frame. A frame whose
    /// work differs ends the process with its number. Says nothing on the CPU.
    bool same_work = false;
    /// Rings on another GPU are reached through their mapping alone, and never by a copy of the slot to its
    /// own: for a stage that can't order all of its work behind the frame's queue, which the copies are in.
    bool maps_peer_rings = false;
    /// How many threads call finish() at once, each for another frame: for a stage whose host work on one
    /// frame takes longer than a frame, and that guards what its frames share. 0: one for each core that the
    /// process may run on. More frames than in_flight there never are; further threads help those that are
    /// (frame::in_parts). A stage that reads the latest frame alone has one.
    u32 finish_threads = 1;
};

/// Throws config_error unless `d` has at most 4 outputs, which are named where there are several.
void check_outputs(const description& d);
/// Throws config_error for a plane of description::reads that its input lacks, or that has another element
/// type there.
void check_reads(const description& d, const configuration& with);
/// The index of the output of that name. Throws config_error with those that are there.
[[nodiscard]] std::size_t output_index(const std::vector<output_description>& outputs, std::string_view name);

/// The one output of `d`, or null for a sink. Throws config_error when there are several: for those who can
/// do with one alone.
[[nodiscard]] const frame_format* output_of(const description& d);
[[nodiscard]] frame_format* output_of(description& d);

}  // namespace carousel
