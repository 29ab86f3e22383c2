#pragma once
// Checks whether another program can continue a run or a stage. A supervisor takes a run over only if the
// pipeline is the same, and a stage's new program must describe the same outputs as the program with which
// the run was started.

#include <optional>
#include <string>

#include "core/json.hpp"
#include "run/directory.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

// The identity of a run: everything of the resolved pipeline that the stages were started with. The identity
// is stored as DIR/pipeline.json with a digest, so that a second supervisor takes a run over only if the same
// pipeline was requested, and can report the difference otherwise. Excludes the report, --seconds and
// colours, which belong to the supervisor.

/// `s` is a setup before prepare_outputs(), which puts the time of the start into paths.
[[nodiscard]] nlohmann::json identity_of(const run_setup& s);
[[nodiscard]] std::string digest_of(const nlohmann::json& identity);
/// Returns the first difference as a clause, "stage geometry: settings.triangles is 500 there and 1000 here";
/// "": none.
[[nodiscard]] std::string difference(const nlohmann::json& there, const nlohmann::json& here);

struct stored_identity {
    nlohmann::json identity;
    nlohmann::json outs;           ///< stage name -> the "out" that it was started with
    std::string output_directory;  ///< run_setup::output_directory
    std::string pictures;          ///< run_setup::pictures
    nlohmann::json depths;         ///< the depths chosen for "auto", see depth_plan.hpp
};
/// Writes DIR/pipeline.json atomically. Throws shm_error.
void write_identity(const std::string& folder, const nlohmann::json& identity, const run_setup& prepared);
/// Returns nothing if there is no readable file.
[[nodiscard]] std::optional<stored_identity> read_identity(const std::string& folder);
/// A run that is taken over keeps its output directory and the places of its pictures.
void restore_outputs(const stored_identity& k, run_setup& s);

// Checks whether the program that is now on disk can take over a stage of a run: the program is queried in
// the same way as before the start of a run, with the inputs that it would be started with. So an error in
// the program is reported to the user who requests the restart, while the old program continues.
// Called by clients of a run (`carousel restart`), not by its supervisor, because that must never block.

/// `stage`: the name that users give, "fragment", "fragment.1". Throws config_error if the program refuses,
/// or produces frames of a format that differs from that of the run. A stage or a run that is unknown here
/// passes the check; the supervisor then decides.
void require_able_successor(const run::record& r, const std::string& stage);

}  // namespace carousel::supervisor
