#pragma once
// Queries the stages of a pipeline before anything is started: each program is run as `PROGRAM --describe`,
// in the order of the links, with its settings and its inputs' formats on stdin, and replies with its
// outputs' formats. So wiring, settings and sizes are checked while there is nothing to clean up.
// Called by the `carousel` program. The programs use no device and write no file; each has 10 s (in Python 60
// s). Throws config_error for a missing program (with the places that were searched), an error that a stage
// reports (at the key that it names, as file:line:col), and a program that hangs, dies or gives an invalid
// reply (the message has its name and its last output).

#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/runs_on.hpp"
#include "parameters/parameter_schema.hpp"
#include "spec/pipeline_file.hpp"

namespace carousel::supervisor {

struct asset_spec {
    std::string name;
    u64 bytes = 0;
};

struct output_spec {
    std::string output;     ///< name of the output; "": the output has no name
    nlohmann::json format;  ///< ring::frame_format as JSON; null: there is no output
    u64 slot_bytes = 0;
};

/// Element i of the descriptions describes the stage pipeline::stages[i]. The inherited members are those of
/// its first output.
struct stage_description : output_spec {
    std::string stage;
    std::string program;                  ///< path of the program that will be started
    std::string python;                   ///< path of the interpreter that the key `python` names; "": no key
    std::vector<output_spec> more;        ///< outputs after the first
    std::vector<u32> input_outputs;       ///< index of the output that each input reads
    std::vector<u32> sampled_outputs;     ///< index of the output that each sampled input reads
    std::vector<asset_spec> makes;        ///< assets that it fills
    std::vector<std::string> uses;        ///< assets that it maps
    ring::parameter_schema parameters;    ///< the parameters that the stage reads; may be empty
    runs_on device = runs_on::any;        ///< where it can run
    bool commits_on_host = false;         ///< the stage does host work after the frame's completion
    bool ends = false;                    ///< a source that may end its stream
    bool accepts_sampled_inputs = false;  ///< the stage can have sampled inputs
    bool forwards_frames = false;         ///< none of the stage's deaths is blamed on a frame
    bool writable_inputs = false;         ///< the stage requires inputs that are mapped writable
    bool bit_equal = false;               ///< its outputs are the same bytes on the CPU as on a GPU
    bool state = false;                   ///< the last of `more` is the ring of its states
    /// True if no ring but that of its states leaves the stage.
    [[nodiscard]] bool is_sink() const noexcept { return format.is_null() || (state && more.empty()); }
    [[nodiscard]] u32 outputs() const noexcept {
        return format.is_null() ? 0 : 1 + static_cast<u32>(more.size());
    }
    [[nodiscard]] const output_spec& ring(u32 k) const {
        return k == 0 ? static_cast<const output_spec&>(*this) : more[k - 1];
    }
};

/// Returns the path of a stage's program. Throws config_error.
[[nodiscard]] std::string find_program(const pipeline& p, const stage_spec& s);
/// Returns the absolute path of the interpreter that the stage's key `python` names; "": there is no such
/// key. Symbolic links are not resolved, because an interpreter finds its environment by the path that it is
/// started with. Throws config_error.
[[nodiscard]] std::string find_interpreter(const pipeline& p, const stage_spec& s);
/// Returns the absolute path of a program of that name in PATH; "": there is none.
[[nodiscard]] std::string program_in_path(const std::string& name);

/// Returns the reply of `program --describe` to `question`. `python`: see command_of() in programs.hpp.
/// Errors are reported for stage `s`. Throws config_error. A program in Python gets six times `timeout_ms`,
/// since it may import a framework.
[[nodiscard]] nlohmann::json query_program(const stage_spec& s, const std::string& program,
                                           const std::string& python, const nlohmann::json& question,
                                           u32 timeout_ms = 10'000);

/// Queries every stage. Throws config_error. `timeout_ms`: limit per program, see query_program().
/// `replies`: if not null, gets the replies of the programs, for describe_stages_from().
[[nodiscard]] std::vector<stage_description> describe_stages(const pipeline& p, u32 timeout_ms = 10'000,
                                                             nlohmann::json* replies = nullptr);

/// Like describe_stages(), from replies that another process has collected: {STAGE: {"program": PATH,
/// "reply": {...}}}. Starts no program and reads no file, so that a supervisor can call it while a pipeline
/// runs. Throws config_error, also if a stage's reply is missing.
[[nodiscard]] std::vector<stage_description> describe_stages_from(const pipeline& p,
                                                                  const nlohmann::json& replies);

// The parameters of a pipeline: the schema that its stages name, and the initial values.

struct parameter_plan {
    ring::parameter_schema schema;  ///< empty: no stage takes parameters
    std::vector<std::byte> values;  ///< the schema's default values, overridden by [parameters]
};

/// Throws config_error if stages name different schemas (the message has both), or if the schema does not
/// accept a key or a value of [parameters] (the message has the place in the file).
[[nodiscard]] parameter_plan plan_parameters(const pipeline& p,
                                             const std::vector<stage_description>& described);

}  // namespace carousel::supervisor
