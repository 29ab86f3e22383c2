#include "stages/recording/frame_message.hpp"

#include <fmt/format.h>

#include <cstring>

#include "stages/recording/frame_schema.hpp"
#include "stages/recording/protobuf.hpp"

namespace carousel::stages {
namespace {

using mcap::format_error;
using ring::element;

/// How foxglove.RawImage calls a plane's pixels; null: it is no picture.
const char* encoding_of(const ring::plane& p) {
    if (!p.strides.empty() || p.shape.size() < 2 || p.shape.size() > 3) return nullptr;
    const u64 channels = p.shape.size() == 3 ? p.shape[2] : 1;
    if (p.type == element::u8_ && channels == 4) return "rgba8";
    if (p.type == element::u8_ && channels == 3) return "rgb8";
    if (channels != 1) return nullptr;
    if (p.type == element::u8_) return "mono8";
    if (p.type == element::u16_) return "mono16";
    if (p.type == element::f32_) return "32FC1";
    return nullptr;
}

/// The plane that stands in `data`; null: none. A format says by its type that it is a picture
/// ("carousel.image.rgba8"): other rings have arrays of two dimensions, too.
const ring::plane* picture_of(const ring::frame_format& format) {
    if (format.type.find("image") == std::string::npos && format.type.find("depth") == std::string::npos)
        return nullptr;
    for (const ring::plane& p : format.planes)
        if (encoding_of(p) != nullptr) return &p;
    return nullptr;
}

void put_facts(proto::writer& w, const ring::frame_format& format, const frame_facts& f,
               const std::byte* slot, const ring::plane* elsewhere) {
    w.fixed64(frame_field::sequence, f.sequence);
    w.fixed64(frame_field::born_ns, f.born_ns);
    w.number(frame_field::time_s, f.time_s);
    w.fixed64(frame_field::parameter_number, f.parameter_number);
    w.bytes(frame_field::parameters, f.parameters);
    for (const ring::plane& p : format.planes) {
        if (&p == elsewhere) continue;
        w.message(frame_field::planes, [&](proto::writer& inner) {
            inner.text(plane_field::name, p.name);
            inner.bytes(plane_field::data, {slot + p.offset, static_cast<std::size_t>(p.bytes())});
        });
    }
}

void take_plane(const ring::plane& p, std::span<const std::byte> data, std::byte* slot) {
    if (data.size() != p.bytes())
        throw format_error(fmt::format("the plane {} has {} bytes, not {}", p.name, data.size(), p.bytes()));
    if (slot != nullptr) std::memcpy(slot + p.offset, data.data(), data.size());
}

std::size_t take_facts(std::span<const std::byte> message, const ring::frame_format& format, std::byte* slot,
                       frame_facts& out) {
    std::size_t planes = 0;
    const auto plane = [&](const proto::field& f) {
        std::string_view name;
        std::span<const std::byte> data;
        const bool whole = proto::read(f.bytes, [&](const proto::field& inner) {
            if (inner.number == plane_field::name) name = inner.as_text();
            if (inner.number == plane_field::data) data = inner.bytes;
        });
        const ring::plane* p = format.find(name);
        if (!whole || p == nullptr)
            throw format_error(fmt::format("a plane \"{}\", which its ring has not", name));
        take_plane(*p, data, slot);
        ++planes;
    };
    const bool whole = proto::read(message, [&](const proto::field& f) {
        if (f.number == frame_field::sequence) out.sequence = f.value;
        if (f.number == frame_field::born_ns) out.born_ns = f.value;
        if (f.number == frame_field::time_s) out.time_s = f.as_f64();
        if (f.number == frame_field::parameter_number) out.parameter_number = f.value;
        if (f.number == frame_field::parameters) out.parameters = f.bytes;
        if (f.number == frame_field::planes) plane(f);
    });
    if (!whole) throw format_error("a message that is no frame");
    return planes;
}

}  // namespace

std::string schema_name(const ring::frame_format& format) {
    return picture_of(format) != nullptr ? image_schema : frame_schema;
}

void put_frame(mcap::buffer& to, const ring::frame_format& format, const std::string& ring,
               const frame_facts& facts, u64 wall_ns, const std::byte* slot) {
    proto::writer w(to);
    const ring::plane* picture = picture_of(format);
    if (picture == nullptr) return put_facts(w, format, facts, slot, nullptr);
    const u64 width = picture->shape[1];
    w.message(image_field::timestamp, [&](proto::writer& t) {
        t.varint(1, wall_ns / 1'000'000'000U);
        t.varint(2, wall_ns % 1'000'000'000U);
    });
    w.fixed32(image_field::width, static_cast<u32>(width));
    w.fixed32(image_field::height, static_cast<u32>(picture->shape[0]));
    w.text(image_field::encoding, encoding_of(*picture));
    w.fixed32(image_field::step, static_cast<u32>(picture->bytes() / picture->shape[0]));
    w.text(image_field::frame_id, ring);
    w.message(image_field::carousel, [&](proto::writer& f) { put_facts(f, format, facts, slot, picture); });
    w.bytes(image_field::data, {slot + picture->offset, static_cast<std::size_t>(picture->bytes())});
}

frame_facts take_frame(std::span<const std::byte> message, const ring::frame_format& format,
                       std::byte* slot) {
    frame_facts out;
    std::size_t planes = 0;
    const ring::plane* picture = picture_of(format);
    if (picture == nullptr) {
        planes = take_facts(message, format, slot, out);
    } else {
        const bool whole = proto::read(message, [&](const proto::field& f) {
            if (f.number == image_field::carousel) planes += take_facts(f.bytes, format, slot, out);
            if (f.number != image_field::data) return;
            take_plane(*picture, f.bytes, slot);
            ++planes;
        });
        if (!whole) throw format_error("a message that is no picture");
    }
    if (planes != format.planes.size())
        throw format_error(
            fmt::format("frame {} has {} planes, its ring {}", out.sequence, planes, format.planes.size()));
    return out;
}

}  // namespace carousel::stages
