#pragma once
// Plans of crashes for a whole run (core/crash_point.hpp): which point, in which stage, by which action; and
// which of them have happened.

#include <string>
#include <vector>

#include "core/crash_point.hpp"
#include "core/types.hpp"

namespace carousel::test {

/// The position of a stage in the pipeline, which determines the points that it passes.
enum class role { source, middle, sink };

/// Points between start and readiness. Every stage passes them once per incarnation.
[[nodiscard]] std::vector<crash_point> set_up_points();
/// The same for a stage with standbys, nearly all of whose incarnations began as one. (took_over is passed
/// only after the death of another process.)
[[nodiscard]] std::vector<crash_point> standby_points();
/// Points that a stage of this role passes for every frame.
[[nodiscard]] std::vector<crash_point> frame_points(role of);
/// Points after the last frame.
[[nodiscard]] std::vector<crash_point> ending_points();

class crash_plan {
public:
    explicit crash_plan(std::string path) : path_(std::move(path)) {}
    void add(const std::string& stage, crash_point point, const std::string& how, u64 nth);
    /// All frame points of the role, at random passages, with set-up points in between: an incarnation that
    /// delivers frames comes before each one that dies early, as five incarnations in a row without a frame
    /// would end the run.
    void add_incarnations(const std::string& stage, role of, const std::string& how,
                          const std::vector<crash_point>& set_up, u64 seed);
    void write() const;
    [[nodiscard]] std::string environment() const { return "CAROUSEL_CRASH_PLAN=" + path_; }
    [[nodiscard]] std::size_t lines() const noexcept { return text_.size(); }
    /// The lines that have not happened; "" if all have.
    [[nodiscard]] std::string pending_lines() const;

private:
    std::string path_;
    std::vector<std::string> text_;
};

}  // namespace carousel::test
