#pragma once
// `carousel explain`: what a word means that a log, a report, `ps` or CUDA says, what leads to it here, and
// what to do. What is told of CUDA was seen on a GPU (an H200, driver 580, CUDA 13.0); what others do may
// differ.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel::supervisor {

struct explanation {
    const char* kind;   ///< "exit code", "CUDA error", "job word", ...
    const char* word;   ///< as it is printed
    const char* means;  ///< one sentence or two
    const char* here;   ///< what leads to it in a run
    const char* act;    ///< what to do
};

/// The table of words, and the keys of a pipeline file that take a number (spec/pipeline_keys.hpp).
[[nodiscard]] std::span<const explanation> all_explanations() noexcept;
/// The table alone.
[[nodiscard]] std::span<const explanation> table_of_words() noexcept;

/// What CUDA names; all_explanations() has more of those that were met here.
struct cuda_error_name {
    u32 number;
    const char *word, *means;
};
[[nodiscard]] std::span<const cuda_error_name> all_cuda_errors() noexcept;

/// Those of a word, regardless of case; an exit code also as "exit code 71" or "128 + 9", a CUDA error also
/// by its number, without its "cudaError", or as the driver names it (CUDA_ERROR_ILLEGAL_ADDRESS), a signal
/// as the exit code behind it. A word may be of two kinds. Throws config_error: none, with what may be meant.
[[nodiscard]] std::vector<explanation> explain(std::string_view word);

/// As text of at most `columns`, and as JSON: [{kind, word, means, here, act}].
[[nodiscard]] std::string explanation_text(const std::vector<explanation>& all, int columns);
[[nodiscard]] std::string explanation_json(const std::vector<explanation>& all);
/// Every word, a kind a paragraph.
[[nodiscard]] std::string explanation_list(int columns);

}  // namespace carousel::supervisor
