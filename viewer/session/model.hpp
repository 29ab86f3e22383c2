#pragma once
// The data that the session and the panels exchange: the state of the run when it was last read, the picture,
// and the panels' requests. Plain data; the session fills it once per frame, before the panels draw.

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "parameters/parameter_schema.hpp"
#include "run/liveness.hpp"
#include "shm/injected_fault.hpp"
#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_series.hpp"
#include "viewer/session/settings.hpp"
#include "viewer/watch/control.hpp"
#include "viewer/watch/picture_choice.hpp"
#include "viewer/watch/slot_sampler.hpp"
#include "viewer/watch/stage_settings.hpp"

namespace carousel::viewer {

enum class run_phase : u8 {
    waiting,   ///< no pipeline is running, or there are several and none is selected
    watching,  ///< a run is watched: it has a supervisor, or its stages continue to run without one
    ended,     ///< the run has finally ended; the last state that was read is still shown
};

/// The picture and its view settings.
struct picture_model {
    u32 width = 0, height = 0;            ///< 0: none yet
    u64 ring_sequence = 0, shown_ns = 0;  ///< number and time of the last complete frame
    std::string stage, path, problem;     ///< problem: the reason why there is no picture
    picture_choice wanted;                ///< the choice, and the styles below; panels set both
    picture_styles styles;
    std::vector<shown_picture> shown;  ///< the pictures of the last complete frame: one, or two side by side
    std::string note;                  ///< why two pictures do not show the same frame; "": they do
    /// `pointer`: the mouse's position in pixels of the whole image; a panel sets it. `pointed`: the pixel at
    /// this position; the session sets it
    std::optional<std::pair<u32, u32>> pointer;
    std::optional<pointed_pixel> pointed;
    f64 copy_ms = 0,
        show_ms = 0;  ///< durations for the shown frame: copy_ms for the copy out of the ring, show_ms for
                      ///< the copy into the texture (time of the window's thread)
    u64 shown_frames = 0, repainted = 0;        ///< repainted: the same frame was painted again in other
                                                ///< colours
    u64 revoked = 0, torn = 0, tombstones = 0;  ///< discarded
    const std::byte* pixels = nullptr;  ///< RGBA8; null on the interop path, where the store has the pixels
    bool paused = false, step = false;
    bool red = true, green = true, blue = true, alpha = false;
    f32 exposure_stops = 0;
    f32 zoom = 0;              ///< screen pixels per picture pixel; 0: the picture fits the panel
    f32 pan_x = 0, pan_y = 0;  ///< offset of the picture's centre from the panel's centre, in screen pixels
    bool save_frame = false;   ///< a panel requests that the frame is saved as a PNG
};

/// The picture of one slot, which the user has chosen in the rings panel.
struct slot_picture_model {
    std::optional<slot_choice> wanted;  ///< the chosen slot; a panel sets it; nullopt: no window is open
    bool requested = false;             ///< a panel requests a picture of the slot's present frame
    slot_sample sample;                 ///< the last result
    u64 version = 0;                    ///< number of results so far
};

struct model {
    run_phase phase = run_phase::waiting;
    run::record run;
    std::vector<run::record> choices;  ///< the live runs, while no run is watched or the list is open
    bool choosing = false;             ///< the list of runs is open
    std::string chosen;                ///< set by a panel: name of the run to watch
    std::string ending;                ///< a sentence if the run has ended: "demo has ended: exit code 0"
    std::string notice;                ///< one sentence on the connection; "": no problem
    u64 now_ns = 0;                    ///< the present time; if pictures must be deterministic, the time of
                                       ///< the snapshot
    telemetry::snapshot snap;
    telemetry::rates rates;
    telemetry::history past;
    telemetry::event_tracker events;
    telemetry::timeline bars;
    std::vector<seat_report> report;  ///< the supervisor's report on each seat; may be empty
    run::ps_fallback off_gpu;         ///< stages on the CPU instead of their GPU
    std::vector<host_report> hosts;   ///< the other hosts of the pipeline, as last reported
    picture_model picture;
    slot_picture_model slot_picture;
    settings kept;
    stage_settings settings_of;  ///< the keys of the pipeline file, by stage
    u32 selected_seat = 0;
    std::vector<command> commands;  ///< the commands that panels have requested in this frame
    /// schema of the run's parameters; empty: there are none, or they are not known yet
    ring::parameter_schema schema;
    /// the parameter values, including local edits; schema.bytes bytes, or empty while they are not known
    std::vector<std::byte> values;
    bool values_changed = false;  ///< a panel requests to send all values that differ from the run's
    bool reset_values = false;    ///< a panel requests that all values are reset to those at the run's start
    bool help = false, screenshot = false, quit = false;
    bool read_only = false;  ///< controls that would change the run are disabled; control_client enforces it

    [[nodiscard]] bool has_parameters() const noexcept {
        return schema && !values.empty() && values.size() == schema.bytes;
    }
    void ask(run::request what) { commands.push_back({std::move(what)}); }
    /// The tooltip of a control that changes the run: its help, or the reason why the control is disabled.
    [[nodiscard]] const char* tip_of(const char* help) const noexcept {
        return read_only ? read_only_text : help;
    }
    /// The supervisor's report on a seat, or null.
    [[nodiscard]] const seat_report* report_of(u32 seat) const {
        return viewer::report_of(report, snap, seat);
    }
};

}  // namespace carousel::viewer
