#pragma once
// What the stages of a pipeline say about themselves before anything is started: each program is run as
// `PROGRAM --describe`, in the order of the links, with its settings and its inputs' formats on stdin, and
// answers with its outputs' formats. So wiring, settings and sizes are checked while there is nothing to
// clean up.
//
// Who may call: the `carousel` program. The programs touch no device and write no file; each has 10 seconds.
// Errors: config_error: a missing program (with the places that were looked at), a stage's complaint (at the
// key it complains about, as file:line:col), one that hangs, dies or talks nonsense (by name, with its last
// words).

#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/runs_on.hpp"
#include "ring/parameter_schema.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

struct asset_spec {
    std::string name;
    u64 bytes = 0;
};

struct output_spec {
    std::string output;     ///< its name; "": it has none
    nlohmann::json format;  ///< ring::frame_format as JSON; null: there is no output
    u64 slot_bytes = 0;
};

/// Of pipeline::stages[i], at the same index. What it inherits is of its first output.
struct stage_description : output_spec {
    std::string stage;
    std::string program;                  ///< path that will be started
    std::vector<output_spec> more;        ///< outputs behind the first
    std::vector<u32> input_outputs;       ///< which output each of its inputs is, by index
    std::vector<u32> sampled_outputs;     ///< the same of its sampled inputs
    std::vector<asset_spec> makes;        ///< assets that it fills
    std::vector<std::string> uses;        ///< assets that it maps
    ring::parameter_schema parameters;    ///< that it reads; none: it reads none
    runs_on device = runs_on::any;        ///< where it can run
    bool commits_on_host = false;         ///< does host work behind the frame's completion
    bool ends = false;                    ///< a source that may end its stream
    bool accepts_sampled_inputs = false;  ///< it can have sampled inputs
    bool forwards_frames = false;         ///< none of its deaths is held against a frame
    bool writable_inputs = false;         ///< can't be content with inputs that are mapped for reading
    [[nodiscard]] u32 outputs() const noexcept {
        return format.is_null() ? 0 : 1 + static_cast<u32>(more.size());
    }
    [[nodiscard]] const output_spec& ring(u32 k) const {
        return k == 0 ? static_cast<const output_spec&>(*this) : more[k - 1];
    }
};

/// Path of the program of a stage. Throws config_error.
[[nodiscard]] std::string find_program(const pipeline& p, const stage_spec& s);
/// Absolute path of a program of that name in PATH; "" when there is none.
[[nodiscard]] std::string program_in_path(const std::string& name);

/// Folder of the pipeline file, absolute: a stage takes the relative paths among its settings from here.
[[nodiscard]] std::string folder_of(const pipeline& p);

/// What `program --describe` answers to that question, as a stage of the file that `s` is of. Throws
/// config_error.
[[nodiscard]] nlohmann::json query_program(const stage_spec& s, const std::string& program,
                                           const nlohmann::json& question, u32 timeout_ms = 10'000);

/// Asks every stage. Throws config_error. One in Python, which may import a framework, has six times as long.
[[nodiscard]] std::vector<stage_description> describe_stages(const pipeline& p, u32 timeout_ms = 10'000);

}  // namespace carousel::supervisor
