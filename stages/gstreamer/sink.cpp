// carouselsink: writes the frames of a GStreamer pipeline into a writing port of a running pipeline.
#include <gst/base/gstbasesink.h>
#include <gst/video/video.h>
#include <carousel/port.hpp>

#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "stages/gstreamer/elements.hpp"
#include "stages/gstreamer/video_layout.hpp"

namespace carousel::gstreamer {
namespace {

constexpr f64 end_patience_s = 1;

struct sink_state {
    std::string pipeline, port;
    f64 wait_s = 5;
    bool drop = false, ends_stream = true;
    std::optional<open_run> run;
    std::optional<writer_port> writer;
    video_layout layout{};
    GstVideoInfo incoming{};
    std::vector<std::byte> staging;  ///< for memory of a GPU
    std::atomic<bool> interrupted{false};
    GstBus* bus = nullptr;
    gulong watch = 0;
    std::atomic<bool> has_failed{false};  ///< an element of the pipeline has posted an error
    std::atomic<u64> dropped{0};
};

struct CarouselSink {
    GstBaseSink base;
    sink_state* state;
};
struct CarouselSinkClass {
    GstBaseSinkClass base;
};

GType carousel_sink_get_type();
G_DEFINE_TYPE(CarouselSink, carousel_sink, GST_TYPE_BASE_SINK)

enum : guint {
    sink_property_pipeline = 1,
    sink_property_port,
    sink_property_wait,
    sink_property_drop,
    sink_property_end,
    sink_property_dropped
};

sink_state& sink_of(gpointer object) { return *static_cast<CarouselSink*>(object)->state; }

void set_sink_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
    sink_state& s = sink_of(object);
    const auto text = [value] {
        const char* t = g_value_get_string(value);
        return std::string(t != nullptr ? t : "");
    };
    GST_OBJECT_LOCK(object);
    switch (id) {
        case sink_property_pipeline:
            s.pipeline = text();
            break;
        case sink_property_port:
            s.port = text();
            break;
        case sink_property_wait:
            s.wait_s = g_value_get_double(value);
            break;
        case sink_property_drop:
            s.drop = g_value_get_boolean(value) != FALSE;
            break;
        case sink_property_end:
            s.ends_stream = g_value_get_boolean(value) != FALSE;
            break;
        default:
            G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    }
    GST_OBJECT_UNLOCK(object);
}

void get_sink_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
    const sink_state& s = sink_of(object);
    GST_OBJECT_LOCK(object);
    switch (id) {
        case sink_property_pipeline:
            g_value_set_string(value, s.pipeline.c_str());
            break;
        case sink_property_port:
            g_value_set_string(value, s.port.c_str());
            break;
        case sink_property_wait:
            g_value_set_double(value, s.wait_s);
            break;
        case sink_property_drop:
            g_value_set_boolean(value, s.drop ? TRUE : FALSE);
            break;
        case sink_property_end:
            g_value_set_boolean(value, s.ends_stream ? TRUE : FALSE);
            break;
        case sink_property_dropped:
            g_value_set_uint64(value, s.dropped);
            break;
        default:
            G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    }
    GST_OBJECT_UNLOCK(object);
}

bool open_sink(gpointer object) {
    sink_state& s = sink_of(object);
    if (s.pipeline.empty() || s.port.empty()) {
        GST_ELEMENT_ERROR(
            object, RESOURCE, SETTINGS,
            ("carouselsink needs pipeline=NAME and port=PORT, the names of a running pipeline and of one "
             "of its writing ports"),
            (nullptr));
        return false;
    }
    try {
        open_options how;
        how.wait_s = s.wait_s;
        s.run.emplace(carousel::open(s.pipeline, how));
        port_options options;
        options.patience_s = end_patience_s;
        s.writer.emplace(s.run->writer(s.port, options));
        s.layout = layout_of(s.writer->format());
        return true;
    } catch (const std::exception& e) {
        s.writer.reset();
        s.run.reset();
        GST_ELEMENT_ERROR(object, RESOURCE, NOT_FOUND, ("%s", e.what()), (nullptr));
        return false;
    }
}

void close_sink(gpointer object) {
    sink_state& s = sink_of(object);
    s.writer.reset();
    s.run.reset();
}

/// The bus on which the whole pipeline posts its messages; null: there is none.
GstBus* bus_of_pipeline(GstElement* element) {
    GstObject* top = GST_OBJECT(gst_object_ref(element));
    while (GstObject* parent = gst_object_get_parent(top)) {
        gst_object_unref(top);
        top = parent;
    }
    GstBus* bus = gst_element_get_bus(GST_ELEMENT(top));
    gst_object_unref(top);
    return bus;
}

// After an error an element upstream may end its stream as well. Such an end must not end the run's stream.
void watch_errors(GstElement* element, sink_state& s) {
    s.has_failed = false;
    s.bus = bus_of_pipeline(element);
    if (s.bus == nullptr) return;
    gst_bus_enable_sync_message_emission(s.bus);
    s.watch = g_signal_connect(
        s.bus, "sync-message::error",
        G_CALLBACK(+[](GstBus*, GstMessage*, gpointer of) { sink_of(of).has_failed = true; }), element);
}

void unwatch_errors(sink_state& s) {
    if (s.bus == nullptr) return;
    g_signal_handler_disconnect(s.bus, s.watch);
    gst_bus_disable_sync_message_emission(s.bus);
    gst_object_unref(std::exchange(s.bus, nullptr));
}

// The run is opened here and not in GstBaseSink::start, after whose failure the base class adds an error of
// its own.
GstStateChangeReturn change_sink_state(GstElement* element, GstStateChange change) {
    const bool opens = change == GST_STATE_CHANGE_READY_TO_PAUSED;
    if (opens && !open_sink(element)) return GST_STATE_CHANGE_FAILURE;
    if (opens) watch_errors(element, sink_of(element));
    const GstStateChangeReturn r =
        GST_ELEMENT_CLASS(carousel_sink_parent_class)->change_state(element, change);
    if (change == GST_STATE_CHANGE_PAUSED_TO_READY || (opens && r == GST_STATE_CHANGE_FAILURE)) {
        unwatch_errors(sink_of(element));
        close_sink(element);
    }
    return r;
}

// Colours are not part of the caps, because decoders often do not know all of them; set_sink_caps() compares
// what a conversion depends on.
GstCaps* own_caps(const sink_state& s) {
    GstCaps* caps = caps_of(s.layout, 0);
    gst_structure_remove_field(gst_caps_get_structure(caps, 0), "colorimetry");
    return caps;
}

bool has_other_colours(const GstVideoInfo& incoming, const GstVideoInfo& port) {
    const GstVideoColorimetry &a = incoming.colorimetry, &b = port.colorimetry;
    return GST_VIDEO_INFO_FORMAT(&port) == GST_VIDEO_FORMAT_NV12 &&
           ((a.matrix != GST_VIDEO_COLOR_MATRIX_UNKNOWN && a.matrix != b.matrix) ||
            (a.range != GST_VIDEO_COLOR_RANGE_UNKNOWN && a.range != b.range));
}

GstCaps* get_sink_caps(GstBaseSink* base, GstCaps* filter) {
    const sink_state& s = sink_of(base);
    GstCaps* caps = s.writer ? own_caps(s) : gst_pad_get_pad_template_caps(GST_BASE_SINK_PAD(base));
    if (filter != nullptr) {
        GstCaps* both = gst_caps_intersect_full(filter, caps, GST_CAPS_INTERSECT_FIRST);
        gst_caps_unref(caps);
        caps = both;
    }
    return caps;
}

gboolean set_sink_caps(GstBaseSink* base, GstCaps* caps) {
    sink_state& s = sink_of(base);
    if (gst_video_info_from_caps(&s.incoming, caps) == FALSE) return FALSE;
    if (has_other_colours(s.incoming, s.layout.info)) {
        gchar* colours = gst_video_colorimetry_to_string(&s.layout.info.colorimetry);
        GST_ELEMENT_ERROR(
            base, CORE, NEGOTIATION,
            ("port \"%s\" has other colours: insert ! videoconvert ! video/x-raw,colorimetry=%s",
             s.port.c_str(), colours),
            (nullptr));
        g_free(colours);
        return FALSE;
    }
    return GST_VIDEO_INFO_FORMAT(&s.incoming) == GST_VIDEO_INFO_FORMAT(&s.layout.info) &&
                   s.incoming.width == s.layout.info.width && s.incoming.height == s.layout.info.height
               ? TRUE
               : FALSE;
}

gboolean propose_allocation(GstBaseSink*, GstQuery* query) {
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
    return TRUE;
}

void copy_planes(const sink_state& s, const GstVideoFrame& from, std::byte* to) {
    const GstVideoInfo& info = s.layout.info;
    for (guint k = 0; k < s.layout.planes; ++k) {
        const auto rows = static_cast<u64>(GST_VIDEO_FRAME_COMP_HEIGHT(&from, k));
        const auto row = static_cast<u64>(GST_VIDEO_FRAME_COMP_WIDTH(&from, k)) *
                         static_cast<u64>(GST_VIDEO_FRAME_COMP_PSTRIDE(&from, k));
        const auto* source = static_cast<const std::byte*>(GST_VIDEO_FRAME_PLANE_DATA(&from, k));
        const auto source_stride = static_cast<u64>(GST_VIDEO_FRAME_PLANE_STRIDE(&from, k));
        for (u64 y = 0; y < rows; ++y)
            std::memcpy(to + info.offset[k] + y * static_cast<u64>(info.stride[k]),
                        source + y * source_stride, row);
    }
}

void fill(sink_state& s, const writer_frame& f, const GstVideoFrame& from) {
    std::byte* slot = f.output().slot() + s.layout.first;
    if (f.where() == device_kind::cpu) {
        copy_planes(s, from, slot);
        return;
    }
    s.staging.resize(s.layout.bytes);
    copy_planes(s, from, s.staging.data());
    f.queue().copy(slot, s.staging.data(), s.layout.bytes);
    f.queue().drain();
}

/// The time of capture: for a live source the time that the buffer's running time names; 0: not known.
u64 capture_time(GstBaseSink* base, GstBuffer* buffer) {
    gboolean is_live = FALSE, upstream_is_live = FALSE;
    GstClockTime least = 0, most = 0;
    if (gst_base_sink_query_latency(base, &is_live, &upstream_is_live, &least, &most) == FALSE ||
        upstream_is_live == FALSE || !GST_BUFFER_PTS_IS_VALID(buffer))
        return 0;
    const GstClockTime running =
        gst_segment_to_running_time(&base->segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
    if (!has_monotonic_clock(GST_ELEMENT(base)) || running == GST_CLOCK_TIME_NONE) return 0;
    return gst_element_get_base_time(GST_ELEMENT(base)) + running;
}

// A frame whose commit is refused is written again: its port was given to another incarnation before the
// frame was in the run.
GstFlowReturn write_buffer(GstBaseSink* base, sink_state& s, GstBuffer* buffer) {
    GstVideoFrame from;
    if (gst_video_frame_map(&from, &s.incoming, buffer, GST_MAP_READ) == FALSE) {
        GST_ELEMENT_ERROR(base, RESOURCE, READ, ("a buffer can't be mapped for reading"), (nullptr));
        return GST_FLOW_ERROR;
    }
    struct unmap_at_end {
        GstVideoFrame* frame;
        ~unmap_at_end() { gst_video_frame_unmap(frame); }
    } const unmap{&from};
    for (;;) {
        if (s.interrupted) {
            const GstFlowReturn r = gst_base_sink_wait_preroll(base);
            if (r != GST_FLOW_OK) return r;
        }
        try {
            writer_frame f = s.writer->next(s.drop ? 0 : longest_wait_s);
            if (!f) {
                if (s.writer->ended()) return GST_FLOW_EOS;
                if (!s.drop) continue;
                ++s.dropped;
                return GST_FLOW_OK;
            }
            fill(s, f, from);
            if (GST_BUFFER_PTS_IS_VALID(buffer))
                f.metadata().set("pts_ns", static_cast<u64>(GST_BUFFER_PTS(buffer)));
            f.set_capture_ns(capture_time(base, buffer));
            f.commit();
            return GST_FLOW_OK;
        } catch (const port_revoked& e) {
            GST_ELEMENT_WARNING(base, RESOURCE, WRITE, ("%s", e.what()), (nullptr));
        }
    }
}

GstFlowReturn render(GstBaseSink* base, GstBuffer* buffer) {
    try {
        return write_buffer(base, sink_of(base), buffer);
    } catch (const std::exception& e) {
        GST_ELEMENT_ERROR(base, RESOURCE, WRITE, ("%s", e.what()), (nullptr));
        return GST_FLOW_ERROR;
    }
}

// The run's stream ends with the first program at the port whose stream ends. If the file does not permit
// this, the port is only vacant after the program's end.
void end_stream(GstBaseSink* base, sink_state& s) {
    while (s.writer && !s.writer->ended() && !s.interrupted) try {
            s.writer->end();
        } catch (const nothing_new&) {  // no room, or no supervisor: tried until GStreamer interrupts
        } catch (const std::exception& e) {
            GST_ELEMENT_WARNING(base, RESOURCE, WRITE, ("%s", e.what()), (nullptr));
            return;
        }
}

gboolean sink_event(GstBaseSink* base, GstEvent* event) {
    sink_state& s = sink_of(base);
    if (GST_EVENT_TYPE(event) == GST_EVENT_EOS && s.ends_stream && !s.has_failed) end_stream(base, s);
    return GST_BASE_SINK_CLASS(carousel_sink_parent_class)->event(base, event);
}

void carousel_sink_init(CarouselSink* self) {
    self->state = new sink_state;
    gst_base_sink_set_sync(GST_BASE_SINK(self), FALSE);
}

void finalize_sink(GObject* object) {
    delete static_cast<CarouselSink*>(static_cast<gpointer>(object))->state;
    G_OBJECT_CLASS(carousel_sink_parent_class)->finalize(object);
}

void carousel_sink_class_init(CarouselSinkClass* type) {
    auto* object = G_OBJECT_CLASS(type);
    auto* element = GST_ELEMENT_CLASS(type);
    auto* base = GST_BASE_SINK_CLASS(type);
    object->set_property = set_sink_property;
    object->get_property = get_sink_property;
    object->finalize = finalize_sink;
    constexpr auto writable =
        static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);
    constexpr auto readable = static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
    const auto add = [object](guint id, GParamSpec* spec) {
        g_object_class_install_property(object, id, spec);
    };
    add(sink_property_pipeline,
        g_param_spec_string("pipeline", "Pipeline", "Name of the running pipeline", "", writable));
    add(sink_property_port,
        g_param_spec_string("port", "Port", "Writing port of the pipeline file (run = \"port\")", "",
                            writable));
    add(sink_property_wait,
        g_param_spec_double("wait", "Wait", "Longest time in seconds to wait for the pipeline at the start",
                            0, 3600, 5, writable));
    add(sink_property_drop,
        g_param_spec_boolean("drop", "Drop", "Drop a frame, instead of waiting, if the run has no room",
                             FALSE, writable));
    add(sink_property_end,
        g_param_spec_boolean("end-stream", "End stream",
                             "End the run's stream at EOS (the port needs ends = true)", TRUE, writable));
    add(sink_property_dropped,
        g_param_spec_uint64("dropped", "Dropped", "Frames dropped (drop=true)", 0, G_MAXUINT64, 0, readable));
    gst_element_class_set_static_metadata(element, "Carousel sink", "Sink/Video",
                                          "Writes frames into a port of a running Carousel pipeline",
                                          "Carousel");
    GstCaps* caps = gst_caps_from_string(all_caps);
    gst_element_class_add_pad_template(element,
                                       gst_pad_template_new("sink", GST_PAD_SINK, GST_PAD_ALWAYS, caps));
    gst_caps_unref(caps);
    element->change_state = change_sink_state;
    base->get_caps = get_sink_caps;
    base->set_caps = set_sink_caps;
    base->propose_allocation = propose_allocation;
    base->render = render;
    base->event = sink_event;
    base->unlock = [](GstBaseSink* sink) -> gboolean {
        sink_of(sink).interrupted = true;
        return TRUE;
    };
    base->unlock_stop = [](GstBaseSink* sink) -> gboolean {
        sink_of(sink).interrupted = false;
        return TRUE;
    };
}

}  // namespace

gboolean register_sink(GstPlugin* plugin) {
    return gst_element_register(plugin, "carouselsink", GST_RANK_NONE, carousel_sink_get_type());
}

}  // namespace carousel::gstreamer
