#pragma once
// A panel: one part of the window. The application owns window, layout and model; a panel draws what the
// model holds and writes what the user asks for into it. One file a panel under panels/, one line in
// panels/list.cpp.

#include <memory>
#include <vector>

#include "viewer/session/model.hpp"
#include "viewer/session/picture_store.hpp"
#include "viewer/window/window.hpp"

namespace carousel::viewer {

class panel {
public:
    virtual ~panel() = default;
    [[nodiscard]] virtual const char* name() const noexcept = 0;   ///< "stages": for tests and settings
    [[nodiscard]] virtual const char* title() const noexcept = 0;  ///< "Stages"
    /// Another run is watched.
    virtual void attach(const model&) {}
    /// Inside the panel's own child window, below its title.
    virtual void draw(model& m, picture_store& store) = 0;
    /// At the right end of the title line: small buttons, legends. `width`: pixels that it may take.
    virtual void menu(model&, f32 /*width*/) {}
    /// What its content takes from top to bottom, title and edges included, pixels; 0: as much or little as
    /// it gets.
    [[nodiscard]] virtual f32 wanted_height(const model&) const { return 0; }
    /// True: the key was for this panel.
    virtual bool on_key(model&, const key_press&) { return false; }
};

/// Where a panel stands; the layout decides what that means. Several may share a place.
enum class place : u8 { image, scene, timeline, stages, rings, plots, events };
inline constexpr std::size_t place_count = 7;

struct placed_panel {
    place where;
    std::unique_ptr<panel> what;
};
[[nodiscard]] std::vector<placed_panel> make_panels();

}  // namespace carousel::viewer
