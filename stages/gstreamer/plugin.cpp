// The entry of the plugin libgstcarousel.so.
#include "stages/gstreamer/elements.hpp"

#define PACKAGE "carousel"

namespace carousel::gstreamer {

bool has_monotonic_clock(GstElement* element) {
    GstClock* clock = gst_element_get_clock(element);
    if (clock == nullptr) return false;
    gint type = -1;
    if (GST_IS_SYSTEM_CLOCK(clock)) g_object_get(clock, "clock-type", &type, nullptr);
    gst_object_unref(clock);
    return type == GST_CLOCK_TYPE_MONOTONIC;
}

}  // namespace carousel::gstreamer

namespace {

gboolean register_elements(GstPlugin* plugin) {
    return carousel::gstreamer::register_source(plugin) != FALSE &&
                   carousel::gstreamer::register_sink(plugin) != FALSE
               ? TRUE
               : FALSE;
}

}  // namespace

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, carousel, "Frames of Carousel pipelines",
                  register_elements, CAROUSEL_VERSION, "Apache 2.0", "carousel", "carousel")
