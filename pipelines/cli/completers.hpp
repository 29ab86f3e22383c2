#pragma once
// Completers for values: fixed words, files, and names from a running pipeline.

#include "cli/complete.hpp"

namespace carousel::supervisor {

/// Offers a fixed list of words.
[[nodiscard]] completer offer(std::vector<std::string> words);
/// Offers folders with a slash, and files whose name ends with one of `endings`; "": any file.
[[nodiscard]] completer offer_files(std::vector<std::string> endings);
/// Offers folders only.
[[nodiscard]] completer offer_folders();

[[nodiscard]] std::vector<std::string> running_pipelines(const completion_request& request);
/// Also offers the spaces of this user, except a run's own space that no process has opened.
[[nodiscard]] std::vector<std::string> pipelines_and_spaces(const completion_request& request);
/// Offers the stages of the pipeline that -p names, or else of the only running one; if a stage has several
/// instances, each of the instances, too. Stages that are already on the command line are left out.
[[nodiscard]] std::vector<std::string> running_stages(const completion_request& request);
/// Offers parameters in the form that `carousel set` takes: "exposure=", and one entry per value for a choice
/// or a flag.
[[nodiscard]] std::vector<std::string> running_parameters(const completion_request& request);

}  // namespace carousel::supervisor
