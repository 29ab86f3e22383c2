#pragma once
// What makes two starts the same run: everything of the resolved pipeline that the stages were started with.
// It lies as DIR/pipeline.json beside the run, with a digest, so that a second supervisor takes a run over
// only when it was asked for the same thing, and can name the difference otherwise. Not part of it: the
// report, --seconds, colours; they are the supervisor's own.

#include <optional>
#include <string>

#include "core/json.hpp"
#include "supervisor/plan/run_setup.hpp"

namespace carousel::supervisor {

/// Of a setup before prepare_outputs(), which puts the time of the start into paths.
[[nodiscard]] nlohmann::json identity_of(const run_setup& s);
[[nodiscard]] std::string digest_of(const nlohmann::json& identity);
/// The first difference as a clause, "stage geometry: settings.triangles is 500 there and 1000 here"; "":
/// none.
[[nodiscard]] std::string difference(const nlohmann::json& there, const nlohmann::json& here);

struct stored_identity {
    nlohmann::json identity;
    nlohmann::json outs;           ///< stage name -> the "out" it was started with
    std::string output_directory;  ///< run_setup::output_directory
    std::string pictures;          ///< run_setup::pictures
    nlohmann::json depths;         ///< what "auto" came to: depth_plan.hpp
};
/// Writes DIR/pipeline.json whole. Throws shm_error.
void write_identity(const std::string& folder, const nlohmann::json& identity, const run_setup& prepared);
/// Empty: there is none, or none that can be read.
[[nodiscard]] std::optional<stored_identity> read_identity(const std::string& folder);
/// A run that is taken over keeps its output directory and the places of its pictures.
void restore_outputs(const stored_identity& k, run_setup& s);

}  // namespace carousel::supervisor
