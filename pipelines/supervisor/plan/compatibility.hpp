#pragma once
// Checks whether another program can continue a run or a stage. A supervisor takes a run over only if the
// pipeline is the same, and a stage's new program must describe the same outputs as the program with which
// the run was started.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/described.hpp"
#include "core/json.hpp"
#include "run/directory.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

// The identity of a run consists of all values of the resolved pipeline with which the stages were started.
// The identity is stored as DIR/pipeline.json with a digest. A second supervisor compares the identity with
// the requested pipeline. If they are the same, it takes the run over; otherwise it reports the difference.
// The identity does not contain the report, --seconds and colours, which concern only the supervisor.

/// `s`: a setup for which prepare_outputs() was not called yet, because that function puts the time of the
/// start into paths.
[[nodiscard]] nlohmann::json identity_of(const run_setup& s);
[[nodiscard]] std::string digest_of(const nlohmann::json& identity);
/// Returns the first difference as a clause, "stage geometry: settings.triangles is 500 there and 1000 here";
/// "": there is no difference.
[[nodiscard]] std::string difference(const nlohmann::json& there, const nlohmann::json& here);
/// Returns `of` without the keys that `with` lacks, at any depth. Two versions that read the same text may
/// have different keys: each version uses its own defaults for the keys that the other version does not know.
[[nodiscard]] nlohmann::json common_keys(const nlohmann::json& of, const nlohmann::json& with);

/// The text that a run's plan was read from. A supervisor that adopts the run reads the same text again,
/// although the file may have changed.
struct plan_source {
    std::string file;          ///< absolute path; "": the plan is a partition of a pipeline for several hosts
    std::string text;          ///< of the file
    nlohmann::json overrides;  ///< by the command line: to_json() of pipeline::overrides
    std::string programs;      ///< folder of Carousel's own programs
    static constexpr field_rules rules{.missing_is_default = true};
};
BOOST_DESCRIBE_STRUCT(plan_source, (), (file, text, overrides, programs))
[[nodiscard]] plan_source source_of(const pipeline& p);
/// True if the two sources have the same text and the same overrides, so that their plans have the same keys.
[[nodiscard]] bool same_text(const plan_source& a, const plan_source& b);
/// Reads the source again. `file`: the file's path in messages. Throws config_error.
[[nodiscard]] pipeline pipeline_from(const plan_source& source, const std::string& file);

struct stored_identity {
    nlohmann::json identity;
    nlohmann::json outs;           ///< by stage name: the setting "out" with which the stage was started
    std::string output_directory;  ///< run_setup::output_directory
    std::string pictures;          ///< run_setup::pictures
    nlohmann::json depths;         ///< the depths chosen for "auto", see depth_plan.hpp
    plan_source source;
};
/// Writes DIR/pipeline.json atomically. Throws shm_error.
void write_identity(const std::string& folder, const nlohmann::json& identity, const run_setup& prepared,
                    const plan_source& source = {});
/// Returns nothing if there is no readable file.
[[nodiscard]] std::optional<stored_identity> read_identity(const std::string& folder);
/// A run that is taken over keeps its output directory and the places of its pictures.
void restore_outputs(const stored_identity& k, run_setup& s);

// Checks whether the program that is now on disk can take over a stage of a run: the program is queried as
// before the start of a run, with the inputs that the started program would have. Therefore the user who
// requests the restart gets the error message of a faulty program, while the old program continues. Called by
// clients of a run (`carousel restart`) and not by its supervisor, because a supervisor must never block.

/// While this object exists, this process has the environment and the working directory of another process.
/// Needed because a stage's program must be queried as the run's supervisor would start it. The environment
/// may set another interpreter (CAROUSEL_PYTHON) or PYTHONPATH, and the overrides of the command line have
/// paths that are relative to the working directory.
class environment_override {
public:
    explicit environment_override(const shm::process_id& of);
    ~environment_override();
    environment_override(const environment_override&) = delete;
    environment_override& operator=(const environment_override&) = delete;

private:
    char** own_;
    std::string text_;
    std::vector<char*> words_;
    std::filesystem::path own_folder_;
};

/// `stage`: the name that users give, "fragment", "fragment.1". Throws config_error if the program refuses,
/// or produces frames of a format that differs from that of the run. If the stage or the run is unknown here,
/// the check passes, and the supervisor decides.
void require_able_successor(const run::record& r, const std::string& stage);

}  // namespace carousel::supervisor
