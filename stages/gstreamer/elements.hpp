#pragma once
// The elements of the plugin; each is defined in its own file.

#include <gst/gst.h>

#include "core/types.hpp"

namespace carousel::gstreamer {

/// Longest single wait in s: after it a wait checks whether GStreamer has interrupted the element.
inline constexpr f64 longest_wait_s = 0.05;

/// True if the clock of the element's pipeline is CLOCK_MONOTONIC, in which the run's times are.
[[nodiscard]] bool has_monotonic_clock(GstElement* element);

/// carouselsrc (source.cpp)
[[nodiscard]] gboolean register_source(GstPlugin* plugin);
/// carouselsink (sink.cpp)
[[nodiscard]] gboolean register_sink(GstPlugin* plugin);

}  // namespace carousel::gstreamer
