#pragma once
// What panels see: the run as it was last read, the picture, and what they may ask for. Plain data; the
// session fills it once a frame, before the panels draw.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "ring/parameter_schema.hpp"
#include "run/liveness.hpp"
#include "shm/injected_fault.hpp"
#include "telemetry/snapshot_events.hpp"
#include "telemetry/snapshot_history.hpp"
#include "telemetry/snapshot_timeline.hpp"
#include "viewer/session/settings.hpp"
#include "viewer/watch/control.hpp"
#include "viewer/watch/picture_choice.hpp"

namespace carousel::viewer {

enum class run_phase : u8 {
    waiting,   ///< no pipeline is running, or several and none is chosen
    watching,  ///< with a supervisor or, as long as stages go on, without
    ended,     ///< for good; what is shown is the last that was seen
};

/// The picture and how it is looked at.
struct picture_model {
    u32 width = 0, height = 0;            ///< 0: none yet
    u64 ring_sequence = 0, shown_ns = 0;  ///< of the last whole frame
    std::string stage, path, problem;     ///< problem: why there is no picture
    picture_choice wanted;                ///< set by panels, as are the looks
    picture_styles styles;
    std::vector<shown_picture> shown;  ///< of the last whole frame: one, or two side by side
    std::string note;                  ///< why two are not of one frame; "": they are
    /// where the mouse is, in pixels of the whole, set by a panel; and what the session found there
    std::optional<std::pair<u32, u32>> pointer;
    std::optional<pointed_pixel> pointed;
    f64 copy_ms = 0,
        show_ms =
            0;  ///< of the shown frame: out of the ring; into the texture (the window thread's own time)
    u64 shown_frames = 0, repainted = 0;        ///< repainted: the same frame in other colours
    u64 revoked = 0, torn = 0, tombstones = 0;  ///< discarded
    const std::byte* pixels = nullptr;          ///< RGBA8; null on the interop path: ask the store
    bool paused = false, step = false;
    bool red = true, green = true, blue = true, alpha = false;
    f32 exposure_stops = 0;
    f32 zoom = 0;              ///< screen pixels a picture pixel; 0: fit
    f32 pan_x = 0, pan_y = 0;  ///< of the picture's middle from the panel's, screen pixels
    bool save_frame = false;   ///< asked for: the frame as a PNG
};

struct model {
    run_phase phase = run_phase::waiting;
    run::record run;
    std::vector<run::record> choices;  ///< while waiting, choosing or ended: the runs that live
    bool choosing = false;             ///< the list of them is open
    std::string chosen;                ///< set by a panel: attach to the one of this name
    std::string ending;                ///< ended: "demo has ended: exit code 0"
    std::string notice;                ///< one sentence on the connection; "" all is well
    u64 now_ns = 0;                    ///< the snapshot's time in deterministic pictures, else the clock
    telemetry::snapshot snap;
    telemetry::rates rates;
    telemetry::history past;
    telemetry::event_tracker events;
    telemetry::timeline bars;
    std::vector<seat_report> report;  ///< the supervisor's own words, may be empty
    std::vector<host_report> hosts;   ///< the other hosts of the pipeline, as last told
    picture_model picture;
    settings kept;
    u32 selected_seat = 0;
    std::vector<command> commands;  ///< asked for by panels in this frame
    ring::parameter_schema schema;  ///< of the run's parameters; none: it has none, or they aren't known yet
    /// as edited here; schema.bytes of them, or none as long as they aren't known
    std::vector<std::byte> values;
    bool values_changed = false;  ///< send what differs from the run's
    bool reset_values = false;    ///< ask for those that the run was started with
    bool help = false, screenshot = false, quit = false;

    [[nodiscard]] bool has_parameters() const noexcept {
        return schema && !values.empty() && values.size() == schema.bytes;
    }
    void ask(std::string verb, u32 seat, int signal = 0) {
        commands.push_back({std::move(verb), snap.seat_label(seat), signal});
    }
    void ask(std::string verb, const remote_seat& seat, int signal = 0) {
        commands.push_back({std::move(verb), seat.label, signal});
    }
    /// Makes the seat's process fail by itself.
    void inject(shm::injected_fault fault, u32 seat) {
        commands.push_back({"inject", snap.seat_label(seat), 0, std::string(shm::name_of(fault))});
    }
    /// The supervisor's report on a seat, or null.
    [[nodiscard]] const seat_report* report_of(u32 seat) const {
        if (seat >= snap.seats.size()) return nullptr;
        for (const seat_report& r : report)
            if (r.stage == snap.stage_name(snap.seats[seat].stage) && r.instance == snap.seats[seat].instance)
                return &r;
        return nullptr;
    }
};

}  // namespace carousel::viewer
