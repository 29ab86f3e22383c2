#pragma once
// What `carousel chaos` does to a pipeline, in which order: a function of the seed alone, on every machine.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel::supervisor::chaos {

enum class fault : u8 {
    kill,        ///< SIGKILL, from outside
    term,        ///< SIGTERM, from outside
    stop,        ///< SIGSTOP, from outside: found at frame_timeout_ms
    all,         ///< SIGKILL to all stages at once
    abort,       ///< by its own hand, in the middle of a frame (`carousel inject`)
    exit,
    hang,        ///< never returns from a frame: found at frame_timeout_ms
    gpu_fault,   ///< stages on a GPU alone
    supervisor,  ///< SIGKILL to the supervisor; the same command takes the run over
};
inline constexpr std::array<std::string_view, 9> fault_names{"kill", "term", "stop", "all", "abort", "exit", "hang", "gpu-fault", "supervisor"};
[[nodiscard]] constexpr std::string_view name_of(fault f) noexcept { return fault_names[static_cast<std::size_t>(f)]; }

/// "kill,stop,hang": the kinds, each once. Throws config_error: unknown, none.
[[nodiscard]] std::vector<fault> faults_from(const std::string& text);

/// One thing to be done. Its victim is seat `who` modulo how many there are, in the order of the pipeline file.
struct step {
    u64 number = 0;      ///< from 0
    fault kind = fault::kill;
    f64 wait_s = 0;      ///< before it; exponential, of the mean that was asked for
    u64 who = 0;
    f64 supervisor_gap_s = 0;  ///< how long the run is to be without one, 0 .. 0.4
};

class plan {
public:
    /// Kinds come with their weights: mostly kills, rarely the supervisor. `mean_wait_s` 0: one after the other.
    plan(u64 seed, std::vector<fault> kinds, f64 mean_wait_s);
    [[nodiscard]] step next();

private:
    [[nodiscard]] u64 random() noexcept;
    [[nodiscard]] f64 fraction() noexcept;  ///< 0 <= x < 1
    u64 state_, number_ = 0;
    std::vector<fault> kinds_;
    u64 weights_ = 0;
    f64 mean_wait_s_;
};

}  // namespace carousel::supervisor::chaos
