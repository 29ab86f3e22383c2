#pragma once
// The viewer's statistics and its cost as one JSON object, for --stats FILE: scripts use it to compare the
// ways of getting a frame to the screen.

#include <string>
#include <vector>

#include "viewer/session/model.hpp"
#include "viewer/window/window.hpp"

namespace carousel::viewer {

class stats {
public:
    stats();
    /// To be called once per drawn frame.
    void feed(const model& m);
    /// {seconds, drawn_per_second, painted_share, shown_per_second, way, take_ms, show_ms, cpu_share, ...};
    /// times as {mean, p50, p99}. Throws output_error.
    void write(const std::string& path, const model& m, const window& w) const;

private:
    u64 began_ns_, began_cpu_ns_, drawn_ = 0, shown_ = 0, shown_before_ = 0;
    std::vector<f32> take_ms_, show_ms_;
    std::string way_;
};

}  // namespace carousel::viewer
