#pragma once
// Checks what Carousel needs from this machine: each item reports what was found, whether that suffices, and
// what to do if it does not. No CUDA in this code: driver queries are done by carousel-probe, a separate
// program, which may crash or hang on a broken driver.

#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/types.hpp"

namespace carousel::supervisor {

enum class verdict : u8 { ok, warn, fail };  ///< warn: Carousel runs with restrictions; fail: it can't run
[[nodiscard]] const char* name_of(verdict v) noexcept;

struct finding {
    std::string name;
    verdict status = verdict::ok;
    std::string found;
    std::string remedy;  ///< empty if there is nothing to do
};

struct doctor_places {
    std::string probe;  ///< path of the probe program; "": carousel-probe in the folder of carousel
    std::string shared_memory = "/dev/shm";
    u32 probe_timeout_ms = 30'000;
};

[[nodiscard]] std::vector<finding> examine(const doctor_places& places = {});

/// Reports on the driver's kernel module, its device files and its library. A container contains only those
/// parts of the driver that were passed into it. `root` is prepended to all paths.
[[nodiscard]] finding driver_finding(const std::string& root = "");

/// Converts carousel-probe's reply (JSON text).
[[nodiscard]] std::vector<finding> findings_of_probe(const std::string& answer);

[[nodiscard]] std::string doctor_text(const std::vector<finding>& all, bool color);
/// {"ok": bool, "checks": [{"name", "status", "found", "remedy"}]}
[[nodiscard]] nlohmann::json doctor_json(const std::vector<finding>& all);
[[nodiscard]] bool any_failed(const std::vector<finding>& all) noexcept;

// Single probes, in doctor_system.cpp and doctor_processes.cpp.
void examine_machine(std::vector<finding>& all);
void examine_shared_memory(std::vector<finding>& all, const std::string& folder);
void examine_limits(std::vector<finding>& all);
void examine_run_folder(std::vector<finding>& all);
void examine_spaces(std::vector<finding>& all);
void examine_display(std::vector<finding>& all);
void examine_build(std::vector<finding>& all, const doctor_places& places);
/// `folder`: the directory with the programs of links between hosts.
[[nodiscard]] finding examine_links(const std::string& folder, u32 timeout_ms);
void examine_processes(std::vector<finding>& all);
void examine_death_signs(std::vector<finding>& all);

}  // namespace carousel::supervisor
