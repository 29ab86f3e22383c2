#include "viewer/web/probes.hpp"

#include <algorithm>

#include "viewer/web/status.hpp"

namespace carousel::viewer::web {
namespace {

bool every_sink_has_a_frame(const view& v) {
    return std::all_of(v.snap.stages.begin(), v.snap.stages.end(),
                       [](const telemetry::stage_view& s) { return !s.outputs.empty() || s.frames > 0; });
}

}  // namespace

probe_answer health(const view& v) {
    const std::string why = hindrance(v);
    if (v.phase != run_phase::running || !v.led) return {false, why};
    if (!v.notice.empty()) return {false, v.notice};
    return {true, why.empty() ? "ok" : why};
}

probe_answer readiness(const view& v) {
    probe_answer a = health(v);
    if (!a.ok) return a;
    const std::string why = hindrance(v), &state = v.whole.state;
    if (!why.empty()) return {false, why};
    if (state == "stopping" || state == "ending" || state == "done" || state == "rebuilding")
        return {false, "the run is " + state};
    if (!every_sink_has_a_frame(v)) return {false, "no frame has reached every sink yet"};
    return a;
}

}  // namespace carousel::viewer::web
