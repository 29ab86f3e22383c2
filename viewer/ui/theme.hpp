#pragma once
// Colours, spacing and fonts. The colours of slots and stages are those of Okabe and Ito, which people with
// every kind of colour vision can distinguish. Slot states also differ in shape.

#include <imgui.h>

#include "telemetry/snapshot.hpp"
#include "telemetry/snapshot_events.hpp"

namespace carousel::viewer::theme {

struct palette {
    ImU32 background, panel, raised, border, text, muted, faint, accent, good, warning, bad, grid;
};

/// Sets ImGui's style and the palette. `scale`: pixels per interface unit.
void apply(bool dark, f32 scale);
[[nodiscard]] const palette& colors() noexcept;
[[nodiscard]] f32 scale() noexcept;
/// Interface units to pixels.
[[nodiscard]] inline f32 px(f32 units) noexcept { return units * scale(); }

/// Loads a sans serif font of the system; if there is none, ImGui's own font. Call before the first frame.
void load_fonts(f32 scale);
[[nodiscard]] ImFont* small_font() noexcept;
[[nodiscard]] ImFont* large_font() noexcept;

[[nodiscard]] ImU32 slot_color(telemetry::slot_phase p) noexcept;
[[nodiscard]] ImU32 stage_color(u32 stage) noexcept;
/// Returns the colour of a ring's line. It is the colour of the ring's stage, but paler for each further
/// output of the stage, so that the rings of one stage differ.
[[nodiscard]] ImU32 ring_color(const telemetry::snapshot& s, std::size_t link) noexcept;
[[nodiscard]] ImU32 event_color(telemetry::event_kind k) noexcept;
[[nodiscard]] ImU32 with_alpha(ImU32 color, f32 alpha) noexcept;
/// Returns black or white, whichever is readable on `color`.
[[nodiscard]] ImU32 text_on(ImU32 color) noexcept;

}  // namespace carousel::viewer::theme
