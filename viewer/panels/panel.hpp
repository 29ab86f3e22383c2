#pragma once
// A panel: one part of the window. The application owns window, layout and model. A panel draws the contents
// of the model, and writes the user's requests into the model. Each panel has one file under panels/, and one
// function and one row in this file.

#include <memory>
#include <vector>

#include "viewer/session/model.hpp"
#include "viewer/session/picture_store.hpp"
#include "viewer/window/window.hpp"

namespace carousel::viewer {

class panel {
public:
    virtual ~panel() = default;
    [[nodiscard]] virtual const char* name() const noexcept = 0;   ///< the name by which tests and settings
                                                                   ///< refer to the panel: "stages"
    [[nodiscard]] virtual const char* title() const noexcept = 0;  ///< "Stages"
    /// Called when another run is watched.
    virtual void attach(const model&) {}
    /// Draws inside the panel's own child window, below its title.
    virtual void draw(model& m, picture_store& store) = 0;
    /// Draws small buttons and legends at the right end of the title line. `width`: the pixels available.
    virtual void menu(model&, f32 /*width*/) {}
    /// The height in pixels that the panel needs, including title and edges; 0: the panel adapts to any
    /// height.
    [[nodiscard]] virtual f32 wanted_height(const model&) const { return 0; }
    /// Returns true if the panel handled the key.
    virtual bool on_key(model&, const key_press&) { return false; }
};

/// The places of panels. The layout determines the rectangle of each place; several panels may share a place.
enum class place : u8 { image, scene, timeline, stages, rings, plots, events };
inline constexpr std::size_t place_count = 7;

struct placed_panel {
    place where;
    std::unique_ptr<panel> what;
};
[[nodiscard]] std::vector<placed_panel> make_panels();

// Each panel has one function and one row of the table.

[[nodiscard]] std::unique_ptr<panel> make_image_panel();
[[nodiscard]] std::unique_ptr<panel> make_scene_panel();
[[nodiscard]] std::unique_ptr<panel> make_timeline_panel();
[[nodiscard]] std::unique_ptr<panel> make_stages_panel();
[[nodiscard]] std::unique_ptr<panel> make_rings_panel();
[[nodiscard]] std::unique_ptr<panel> make_plots_panel();
[[nodiscard]] std::unique_ptr<panel> make_events_panel();
[[nodiscard]] std::unique_ptr<panel> make_depth_panel();
[[nodiscard]] std::unique_ptr<panel> make_frames_panel();

struct panel_row {
    place where;
    std::unique_ptr<panel> (*make)();
};
/// If several panels share a place, they are shown in the order of this table.
inline constexpr panel_row panel_rows[] = {
    {place::image, make_image_panel},       {place::scene, make_scene_panel},
    {place::timeline, make_timeline_panel}, {place::stages, make_stages_panel},
    {place::rings, make_rings_panel},       {place::plots, make_plots_panel},
    {place::events, make_events_panel},     {place::events, make_depth_panel},
    {place::events, make_frames_panel},
};

}  // namespace carousel::viewer
