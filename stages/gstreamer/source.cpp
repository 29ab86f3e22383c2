// carouselsrc: the frames of a running pipeline as a GStreamer source.
#include <gst/base/gstpushsrc.h>
#include <gst/video/video.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "core/clock.hpp"
#include "stages/gstreamer/elements.hpp"
#include "stages/gstreamer/source_port.hpp"

namespace carousel::gstreamer {
namespace {

constexpr u64 ns_unset = 0;

/// A clock of the frames, and its time at a frame.
struct frame_time {
    int clock = 0;
    u64 ns = 0;
};

struct source_state {
    source_options options;
    std::unique_ptr<source_port> port;
    std::atomic<bool> interrupted{false};
    video_layout negotiated{};
    bool has_caps = false, takes_strides = false;
    GstClockTime frame_duration = GST_CLOCK_TIME_NONE;
    bool has_first = false;
    frame_time first;  ///< the clock's time at which the pts is first_pts
    GstClockTime first_pts = 0, last_pts = 0, last_step = 0;
    std::atomic<u64> latency_ns{0};
};

struct CarouselSrc {
    GstPushSrc base;
    source_state* state;
};
struct CarouselSrcClass {
    GstPushSrcClass base;
};

GType carousel_src_get_type();
G_DEFINE_TYPE(CarouselSrc, carousel_src, GST_TYPE_PUSH_SRC)

enum : guint { property_pipeline = 1, property_ring, property_mode, property_wait, property_dropped };
enum mode_value : gint { mode_every = 0, mode_newest = 1 };

GType mode_type() {
    static const GEnumValue values[] = {
        {mode_every, "Each frame once, in order; the run waits for it", "every"},
        {mode_newest, "The newest frame; the run never waits", "newest"},
        {0, nullptr, nullptr}};
    static const GType type = g_enum_register_static("CarouselSrcMode", values);
    return type;
}

CarouselSrc* self_of(gpointer object) { return static_cast<CarouselSrc*>(object); }
source_state& state_of(gpointer object) { return *self_of(object)->state; }

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
    source_options& o = state_of(object).options;
    const auto text = [value] {
        const char* t = g_value_get_string(value);
        return std::string(t != nullptr ? t : "");
    };
    GST_OBJECT_LOCK(object);
    switch (id) {
        case property_pipeline:
            o.pipeline = text();
            break;
        case property_ring:
            o.ring = text();
            break;
        case property_mode:
            o.every = g_value_get_enum(value) == mode_every;
            break;
        case property_wait:
            o.wait_s = g_value_get_double(value);
            break;
        default:
            G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    }
    GST_OBJECT_UNLOCK(object);
    if (id == property_mode) gst_base_src_set_live(GST_BASE_SRC(object), o.every ? FALSE : TRUE);
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
    const source_state& s = state_of(object);
    GST_OBJECT_LOCK(object);
    switch (id) {
        case property_pipeline:
            g_value_set_string(value, s.options.pipeline.c_str());
            break;
        case property_ring:
            g_value_set_string(value, s.options.ring.c_str());
            break;
        case property_mode:
            g_value_set_enum(value, s.options.every ? mode_every : mode_newest);
            break;
        case property_wait:
            g_value_set_double(value, s.options.wait_s);
            break;
        case property_dropped:
            g_value_set_uint64(value, s.port ? s.port->dropped() : 0);
            break;
        default:
            G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
    }
    GST_OBJECT_UNLOCK(object);
}

bool open_source(gpointer object) {
    source_state& s = state_of(object);
    if (s.options.pipeline.empty() || s.options.ring.empty()) {
        GST_ELEMENT_ERROR(
            object, RESOURCE, SETTINGS,
            ("carouselsrc needs pipeline=NAME and ring=STAGE, the names of a running pipeline and of "
             "one of its stages"),
            (nullptr));
        return false;
    }
    try {
        auto port = std::make_unique<source_port>(s.options);
        GST_OBJECT_LOCK(object);
        s.port = std::move(port);
        GST_OBJECT_UNLOCK(object);
    } catch (const std::exception& e) {
        GST_ELEMENT_ERROR(object, RESOURCE, NOT_FOUND, ("%s", e.what()), (nullptr));
        return false;
    }
    s.has_caps = s.has_first = false;
    s.frame_duration =
        s.port->fps() > 0 ? static_cast<GstClockTime>(1e9 / s.port->fps()) : GST_CLOCK_TIME_NONE;
    s.first_pts = s.last_pts = s.last_step = s.latency_ns = 0;
    return true;
}

void close_source(gpointer object) {
    source_state& s = state_of(object);
    GST_OBJECT_LOCK(object);
    std::unique_ptr<source_port> port = std::move(s.port);
    GST_OBJECT_UNLOCK(object);
}

// The run is opened here and not in GstBaseSrc::start, after whose failure the base class adds an error of
// its own.
GstStateChangeReturn change_state(GstElement* element, GstStateChange change) {
    if (change == GST_STATE_CHANGE_READY_TO_PAUSED && !open_source(element)) return GST_STATE_CHANGE_FAILURE;
    const GstStateChangeReturn r =
        GST_ELEMENT_CLASS(carousel_src_parent_class)->change_state(element, change);
    const bool opened_in_vain = change == GST_STATE_CHANGE_READY_TO_PAUSED && r == GST_STATE_CHANGE_FAILURE;
    if (change == GST_STATE_CHANGE_PAUSED_TO_READY || opened_in_vain) close_source(element);
    return r;
}

gboolean unlock(GstBaseSrc* base) {
    state_of(base).interrupted = true;
    return TRUE;
}

gboolean unlock_stop(GstBaseSrc* base) {
    state_of(base).interrupted = false;
    return TRUE;
}

GstCaps* get_caps(GstBaseSrc* base, GstCaps* filter) {
    const source_state& s = state_of(base);
    GstCaps* caps = s.port ? caps_of(s.has_caps ? s.negotiated : s.port->layout(), s.port->fps())
                           : gst_pad_get_pad_template_caps(GST_BASE_SRC_PAD(base));
    if (filter != nullptr) {
        GstCaps* both = gst_caps_intersect_full(filter, caps, GST_CAPS_INTERSECT_FIRST);
        gst_caps_unref(caps);
        caps = both;
    }
    return caps;
}

// Without a rate of the run or of a filter downstream the stream has a variable rate (0/1).
GstCaps* fixate(GstBaseSrc* base, GstCaps* caps) {
    caps = gst_caps_make_writable(caps);
    for (guint k = 0; k < gst_caps_get_size(caps); ++k)
        gst_structure_fixate_field_nearest_fraction(gst_caps_get_structure(caps, k), "framerate", 0, 1);
    return GST_BASE_SRC_CLASS(carousel_src_parent_class)->fixate(base, caps);
}

gboolean set_caps(GstBaseSrc* base, GstCaps* caps) {
    source_state& s = state_of(base);
    GstVideoInfo info;
    if (gst_video_info_from_caps(&info, caps) == FALSE) return FALSE;
    if (info.fps_n > 0) s.frame_duration = gst_util_uint64_scale_int(GST_SECOND, info.fps_d, info.fps_n);
    if (!s.has_caps && s.port) s.negotiated = s.port->layout();
    s.has_caps = true;
    return TRUE;
}

gboolean decide_allocation(GstBaseSrc* base, GstQuery* query) {
    state_of(base).takes_strides =
        gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr) != FALSE;
    return TRUE;  // no pool: the memory is the ring's
}

// A picture of another size, because its planes are used in part, gets its own caps.
bool follow_size(GstBaseSrc* base, source_state& s, const video_layout& layout) {
    if (s.has_caps && s.negotiated.is_same_picture(layout)) return true;
    GstCaps* caps = caps_of(layout, s.port->fps());
    caps = fixate(base, caps);
    s.negotiated = layout;
    s.has_caps = true;
    const bool is_set = gst_base_src_set_caps(base, caps) != FALSE;
    gst_caps_unref(caps);
    return is_set;
}

GstBuffer* buffer_of(const source_state& s, const picture& p) {
    GstBuffer* buffer = gst_buffer_new();
    const GstVideoInfo& from = p.layout.info;
    if (p.layout.is_packed || s.takes_strides) {
        gst_buffer_append_memory(buffer, wrap(p.memory));
        gsize offsets[GST_VIDEO_MAX_PLANES] = {};
        gint strides[GST_VIDEO_MAX_PLANES] = {};
        std::copy_n(from.offset, p.layout.planes, offsets);
        std::copy_n(from.stride, p.layout.planes, strides);
        gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&from),
                                       static_cast<guint>(from.width), static_cast<guint>(from.height),
                                       p.layout.planes, offsets, strides);
        return buffer;
    }
    GstVideoInfo to;
    gst_video_info_init(&to);
    gst_video_info_set_format(&to, GST_VIDEO_INFO_FORMAT(&from), static_cast<guint>(from.width),
                              static_cast<guint>(from.height));
    GstMemory* memory = gst_allocator_alloc(nullptr, to.size, nullptr);
    GstMapInfo map;
    gst_memory_map(memory, &map, GST_MAP_WRITE);
    std::memset(map.data, 0, map.size);  // the ends of the rows
    const std::byte* slot = p.memory->map();
    for (u32 k = 0; k < p.layout.planes; ++k) {
        const auto rows = static_cast<u64>(GST_VIDEO_INFO_COMP_HEIGHT(&from, k));
        const auto row = static_cast<u64>(GST_VIDEO_INFO_COMP_WIDTH(&from, k)) *
                         static_cast<u64>(GST_VIDEO_INFO_COMP_PSTRIDE(&from, k));
        for (u64 y = 0; y < rows; ++y)
            std::memcpy(map.data + to.offset[k] + y * static_cast<u64>(to.stride[k]),
                        slot + from.offset[k] + y * static_cast<u64>(from.stride[k]), row);
    }
    p.memory->unmap(slot);
    gst_memory_unmap(memory, &map);
    gst_buffer_append_memory(buffer, memory);
    return buffer;
}

// The newest frames: the running time of their capture, so that a frame's age is its latency. If an element
// needs longer than reported, the pipeline distributes the latency again.
GstClockTime live_pts(CarouselSrc* self, source_state& s, const picture& p) {
    auto* element = GST_ELEMENT(self);
    const GstClockTime base = gst_element_get_base_time(element);
    if (!has_monotonic_clock(element) || base == GST_CLOCK_TIME_NONE) return GST_CLOCK_TIME_NONE;
    const u64 taken = p.capture_ns != ns_unset ? p.capture_ns : p.born_ns;
    const u64 now = now_ns();
    const u64 age = now - std::min(now, taken);
    if (age > s.latency_ns.load(std::memory_order_relaxed)) {
        s.latency_ns.store(age + age / 2, std::memory_order_relaxed);
        gst_element_post_message(element, gst_message_new_latency(GST_OBJECT(self)));
    }
    return taken > base ? taken - base : 0;
}

// All frames: the time since the first one by the source's own time stamps, by the clock of its capture, or
// by the run's rate; the time when the source began the frame is the last resort.
frame_time time_of(const source_state& s, const picture& p) {
    if (p.pts_ns) return {1, *p.pts_ns};
    if (p.capture_ns != ns_unset) return {2, p.capture_ns};
    if (s.port->fps() > 0) return {3, static_cast<u64>(std::llround(p.time_s * 1e9))};
    if (s.frame_duration != GST_CLOCK_TIME_NONE) return {4, s.frame_duration * p.frame_number};
    return {5, p.born_ns};
}

// Where the clock goes back or is another one, because another program writes the run's source now, the time
// continues after the last frame.
GstClockTime recorded_pts(source_state& s, const picture& p) {
    const frame_time now = time_of(s, p);
    if (!s.has_first) s.first = now;
    if (s.has_first && (now.clock != s.first.clock || now.ns < s.first.ns + (s.last_pts - s.first_pts))) {
        s.first_pts = s.last_pts + s.last_step;
        s.first = now;
    }
    s.has_first = true;
    return s.first_pts + (now.ns - s.first.ns);
}

GstFlowReturn create(GstPushSrc* push, GstBuffer** out) {
    CarouselSrc* self = self_of(push);
    source_state& s = *self->state;
    auto* base = GST_BASE_SRC(push);
    try {
        picture p;
        for (;;) {
            if (s.interrupted) return GST_FLOW_FLUSHING;
            const source_port::result r = s.port->next(p, longest_wait_s);
            if (const std::string w = s.port->take_warning(); !w.empty())
                GST_ELEMENT_WARNING(self, RESOURCE, READ, ("%s", w.c_str()), (nullptr));
            if (r == source_port::result::picture) break;
            if (r == source_port::result::ended) return GST_FLOW_EOS;
        }
        if (!follow_size(base, s, p.layout)) return GST_FLOW_NOT_NEGOTIATED;
        GstBuffer* buffer = buffer_of(s, p);
        GstClockTime pts = s.options.every ? recorded_pts(s, p) : live_pts(self, s, p);
        if (pts != GST_CLOCK_TIME_NONE) {
            pts = std::max(pts, s.last_pts);
            s.last_step = pts - s.last_pts;
            s.last_pts = pts;
        }
        GST_BUFFER_PTS(buffer) = pts;
        GST_BUFFER_DURATION(buffer) = s.frame_duration;
        GST_BUFFER_OFFSET(buffer) = p.frame_number;
        GST_BUFFER_OFFSET_END(buffer) = p.frame_number + 1;
        if (p.follows_gap) GST_BUFFER_FLAG_SET(buffer, GST_BUFFER_FLAG_DISCONT);
        *out = buffer;
        return GST_FLOW_OK;
    } catch (const std::exception& e) {
        GST_ELEMENT_ERROR(self, RESOURCE, READ, ("%s", e.what()), (nullptr));
        return GST_FLOW_ERROR;
    }
}

gboolean query(GstBaseSrc* base, GstQuery* q) {
    source_state& s = state_of(base);
    if (GST_QUERY_TYPE(q) == GST_QUERY_LATENCY) {
        const bool live = !s.options.every;
        const u64 one = s.frame_duration == GST_CLOCK_TIME_NONE ? 0 : s.frame_duration;
        const u64 least = live ? std::max(one, s.latency_ns.load(std::memory_order_relaxed)) : 0;
        gst_query_set_latency(q, live ? TRUE : FALSE, least, GST_CLOCK_TIME_NONE);
        return TRUE;
    }
    return GST_BASE_SRC_CLASS(carousel_src_parent_class)->query(base, q);
}

GstPadProbeReturn note_pushed(GstPad*, GstPadProbeInfo*, gpointer object) {
    if (const source_state& s = state_of(object); s.port) s.port->note_handed_over();
    return GST_PAD_PROBE_OK;
}

void carousel_src_init(CarouselSrc* self) {
    self->state = new source_state;
    self->state->options.every = true;
    auto* base = GST_BASE_SRC(self);
    gst_base_src_set_format(base, GST_FORMAT_TIME);
    gst_base_src_set_live(base, FALSE);
    gst_pad_add_probe(GST_BASE_SRC_PAD(base), GST_PAD_PROBE_TYPE_BUFFER, note_pushed, self, nullptr);
}

void finalize(GObject* object) {
    delete self_of(object)->state;
    G_OBJECT_CLASS(carousel_src_parent_class)->finalize(object);
}

void carousel_src_class_init(CarouselSrcClass* type) {
    auto* object = G_OBJECT_CLASS(type);
    auto* element = GST_ELEMENT_CLASS(type);
    auto* base = GST_BASE_SRC_CLASS(type);
    object->set_property = set_property;
    object->get_property = get_property;
    object->finalize = finalize;
    constexpr auto writable =
        static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY);
    constexpr auto readable = static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
    const auto add = [object](guint id, GParamSpec* spec) {
        g_object_class_install_property(object, id, spec);
    };
    add(property_pipeline,
        g_param_spec_string("pipeline", "Pipeline", "Name of the running pipeline", "", writable));
    add(property_ring,
        g_param_spec_string("ring", "Ring",
                            "Stage whose frames are read; with mode=every: that stage, if one port of "
                            "the pipeline file reads it, or the port",
                            "", writable));
    add(property_mode,
        g_param_spec_enum("mode", "Mode", "Which frames are read", mode_type(), mode_every, writable));
    add(property_wait,
        g_param_spec_double("wait", "Wait", "Longest time in seconds to wait for the pipeline at the start",
                            0, 3600, 5, writable));
    add(property_dropped, g_param_spec_uint64("dropped", "Dropped", "Frames left out (mode=newest)", 0,
                                              G_MAXUINT64, 0, readable));
    gst_element_class_set_static_metadata(element, "Carousel source", "Source/Video",
                                          "Reads the frames of a stage of a running Carousel pipeline",
                                          "Carousel");
    GstCaps* caps = gst_caps_from_string(all_caps);
    gst_element_class_add_pad_template(element,
                                       gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, caps));
    gst_caps_unref(caps);
    gst_type_mark_as_plugin_api(mode_type(), static_cast<GstPluginAPIFlags>(0));
    element->change_state = change_state;
    base->unlock = unlock;
    base->unlock_stop = unlock_stop;
    base->get_caps = get_caps;
    base->set_caps = set_caps;
    base->fixate = fixate;
    base->decide_allocation = decide_allocation;
    base->query = query;
    base->is_seekable = [](GstBaseSrc*) -> gboolean { return FALSE; };
    GST_PUSH_SRC_CLASS(type)->create = create;
}

}  // namespace

gboolean register_source(GstPlugin* plugin) {
    return gst_element_register(plugin, "carouselsrc", GST_RANK_NONE, carousel_src_get_type());
}

}  // namespace carousel::gstreamer
