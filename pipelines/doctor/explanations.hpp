#pragma once
// `carousel explain`: the meaning of a word in a log, a report, `ps` or CUDA, its causes in Carousel, and
// what to do. Statements about CUDA were observed on one GPU (an H200, driver 580, CUDA 13.0); other systems
// may behave differently.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel::supervisor {

struct explanation {
    const char* kind;   ///< "exit code", "CUDA error", "job word", ...
    const char* word;   ///< as printed
    const char* means;  ///< one or two sentences
    const char* here;   ///< the causes in a run of Carousel
    const char* act;    ///< what to do
};

/// Returns the table of words, and the keys of a pipeline file (spec/pipeline_keys.hpp).
[[nodiscard]] std::span<const explanation> all_explanations() noexcept;
/// Only the table.
[[nodiscard]] std::span<const explanation> table_of_words() noexcept;

/// Returns all errors that CUDA names; all_explanations() has more text for the errors that were observed
/// with Carousel.
struct cuda_error_name {
    u32 number;
    const char *word, *means;
};
[[nodiscard]] std::span<const cuda_error_name> all_cuda_errors() noexcept;

/// Returns the explanations of a word, ignoring case. An exit code also matches as "128 + 9" or "exit code
/// 71". A CUDA error also matches by its number, without its prefix "cudaError", or by the driver's name
/// (CUDA_ERROR_ILLEGAL_ADDRESS). A signal also matches as the exit code that it causes. If a word has two
/// kinds, both explanations are returned. Throws config_error with suggestions if there is no explanation.
[[nodiscard]] std::vector<explanation> explain(std::string_view word);

/// Formats explanations as text of at most `columns` columns, and as JSON: [{kind, word, means, here, act}].
[[nodiscard]] std::string explanation_text(const std::vector<explanation>& all, int columns);
[[nodiscard]] std::string explanation_json(const std::vector<explanation>& all);
/// Lists every word, one paragraph per kind.
[[nodiscard]] std::string explanation_list(int columns);

}  // namespace carousel::supervisor
