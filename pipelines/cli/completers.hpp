#pragma once
// What Tab offers for values: words, files, and what a running pipeline has.

#include "cli/complete.hpp"

namespace carousel::supervisor {

/// Always the same words.
[[nodiscard]] completer offer(std::vector<std::string> words);
/// Folders with a slash, and files whose name ends in one of `endings`; "": any file.
[[nodiscard]] completer offer_files(std::vector<std::string> endings);
/// Folders alone.
[[nodiscard]] completer offer_folders();

[[nodiscard]] std::vector<std::string> running_pipelines(const completion_request& request);
/// Of this user, but those of pipelines that nobody has opened. orphaned_spaces: without a holder.
[[nodiscard]] std::vector<std::string> live_spaces(const completion_request& request);
[[nodiscard]] std::vector<std::string> orphaned_spaces(const completion_request& request);
[[nodiscard]] std::vector<std::string> pipelines_and_spaces(const completion_request& request);
/// Of the pipeline that -p names, else of the only one that runs; with several instances each of them, too.
/// Not those that stand in the command line already.
[[nodiscard]] std::vector<std::string> running_stages(const completion_request& request);
/// Its parameters as `carousel set` takes them: "exposure=", and of a choice or a flag each value.
[[nodiscard]] std::vector<std::string> running_parameters(const completion_request& request);

}  // namespace carousel::supervisor
