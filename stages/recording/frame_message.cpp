#include "stages/recording/frame_message.hpp"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <span>

#include "core/errors.hpp"
#include "frame/metadata.hpp"
#include "stages/recording/protobuf.hpp"

namespace carousel::stages {
namespace {

// Values from google/protobuf/descriptor.proto.
enum kind : u32 {
    k_double = 1,
    k_int64 = 3,
    k_int32 = 5,
    k_fixed64 = 6,
    k_fixed32 = 7,
    k_bool = 8,
    k_string = 9,
    k_message = 11,
    k_bytes = 12,
    k_sfixed64 = 16
};

struct field_row {
    const char* name;
    u32 number;
    kind type;
    const char* message = "";  ///< full name of the message's type
    bool repeated = false;
};
struct message_row {
    const char* name;
    std::span<const field_row> fields;
};

constexpr field_row time_fields[] = {{"seconds", 1, k_int64}, {"nanos", 2, k_int32}};
constexpr field_row plane_fields[] = {{"name", plane_field::name, k_string},
                                      {"data", plane_field::data, k_bytes},
                                      {"used", plane_field::used, k_fixed64, "", true}};
constexpr field_row entry_fields[] = {
    {"key", entry_field::key, k_string},       {"truth", entry_field::truth, k_bool},
    {"whole", entry_field::whole, k_sfixed64}, {"natural", entry_field::natural, k_fixed64},
    {"number", entry_field::number, k_double}, {"text", entry_field::text, k_string},
    {"bytes", entry_field::bytes, k_bytes},
};
constexpr field_row frame_fields[] = {
    {"frame_number", frame_field::frame_number, k_fixed64},
    {"born_ns", frame_field::born_ns, k_fixed64},
    {"time_s", frame_field::time_s, k_double},
    {"parameter_number", frame_field::parameter_number, k_fixed64},
    {"parameters", frame_field::parameters, k_bytes},
    {"planes", frame_field::planes, k_message, ".carousel.Plane", true},
    {"capture_ns", frame_field::capture_ns, k_fixed64},
    {"metadata", frame_field::metadata, k_message, ".carousel.Entry", true},
};
constexpr field_row image_fields[] = {
    {"timestamp", image_field::timestamp, k_message, ".google.protobuf.Timestamp"},
    {"width", image_field::width, k_fixed32},
    {"height", image_field::height, k_fixed32},
    {"encoding", image_field::encoding, k_string},
    {"step", image_field::step, k_fixed32},
    {"data", image_field::data, k_bytes},
    {"frame_id", image_field::frame_id, k_string},
    {"carousel", image_field::carousel, k_message, ".carousel.Frame"},
};

constexpr field_row jpeg_fields[] = {
    {"timestamp", jpeg_field::timestamp, k_message, ".google.protobuf.Timestamp"},
    {"data", jpeg_field::data, k_bytes},
    {"format", jpeg_field::format, k_string},
    {"frame_id", jpeg_field::frame_id, k_string},
};

void put_message(proto::writer& file, const message_row& m) {
    file.message(4, [&](proto::writer& w) {
        w.text(1, m.name);
        for (const field_row& f : m.fields)
            w.message(2, [&](proto::writer& to) {
                to.text(1, f.name);
                to.varint(3, f.number);
                to.varint(4, f.repeated ? 3 : 1);
                to.varint(5, f.type);
                if (f.message[0] != 0) to.text(6, f.message);
            });
    });
}

void put_file(proto::writer& set, const char* name, const char* package, std::span<const char* const> imports,
              std::span<const message_row> messages) {
    set.message(1, [&](proto::writer& w) {
        w.text(1, name);
        w.text(2, package);
        for (const char* import : imports) w.text(3, import);
        for (const message_row& m : messages) put_message(w, m);
        w.text(12, "proto3");
    });
}

using mcap::format_error;
using ring::element;

/// Returns the name of a plane's pixel format in foxglove.RawImage; null: it is not a picture.
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

/// Returns the plane that is stored in the message's field `data`; null: there is none. Only the format's
/// type ("carousel.image.rgba8") shows that a frame is a picture, because other rings also have
/// two-dimensional arrays.
const ring::plane* picture_of(const ring::frame_format& format) {
    if (format.type.find("image") == std::string::npos && format.type.find("depth") == std::string::npos)
        return nullptr;
    for (const ring::plane& p : format.planes)
        if (encoding_of(p) != nullptr) return &p;
    return nullptr;
}

void put_entry(proto::writer& w, const ring::metadata_entry& e) {
    w.text(entry_field::key, e.key);
    const auto field = static_cast<u32>(e.value.index()) + entry_field::truth;
    std::visit(
        [&](const auto& v) {
            using kind = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<kind, bool>)
                w.varint(field, v ? 1 : 0);
            else if constexpr (std::is_same_v<kind, f64>)
                w.number(field, v);
            else if constexpr (std::is_integral_v<kind>)
                w.fixed64(field, static_cast<u64>(v));
            else if constexpr (std::is_same_v<kind, std::string_view>)
                w.text(field, v);
            else
                w.bytes(field, v);
        },
        e.value);
}

void take_entry(std::span<const std::byte> message, std::vector<std::byte>& to) {
    ring::metadata_entry e;
    const bool whole = proto::read(message, [&](const proto::field& f) {
        if (f.number == entry_field::key) e.key = f.as_text();
        if (f.number == entry_field::truth) e.value = f.value != 0;
        if (f.number == entry_field::whole) e.value = static_cast<i64>(f.value);
        if (f.number == entry_field::natural) e.value = f.value;
        if (f.number == entry_field::number) e.value = f.as_f64();
        if (f.number == entry_field::text) e.value = f.as_text();
        if (f.number == entry_field::bytes) e.value = f.bytes;
    });
    auto used = static_cast<u32>(to.size());
    to.resize(shm::max_metadata_bytes);
    const ring::metadata_change how = ring::set_metadata(to, used, e.key, e.value);
    to.resize(used);
    if (!whole || how != ring::metadata_change::done)
        throw format_error(fmt::format("metadata \"{}\" is not possible in a frame", e.key));
}

/// The number of bytes of a plane that are recorded; for a picture, a whole number of rows.
u64 recorded_bytes(const ring::frame_format& format, std::size_t index, const shm::used_extents& used,
                   bool picture) {
    const ring::plane& p = format.planes[index];
    if (!picture) return ring::used_plane(format, index, used).bytes();
    return p.bytes() / p.shape[0] * ring::used_extent(p, index, 0, used);
}

void put_used(proto::writer& w, const ring::frame_format& format, std::size_t index,
              const shm::used_extents& used) {
    if (!ring::is_used_in_part(used, index)) return;
    for (u32 d = 0; d < format.planes[index].shape.size(); ++d)
        w.fixed64(plane_field::used, ring::used_extent(format.planes[index], index, d, used));
}

void put_facts(proto::writer& w, const ring::frame_format& format, const frame_facts& f,
               const std::byte* slot, const ring::plane* elsewhere) {
    w.fixed64(frame_field::frame_number, f.frame_number);
    w.fixed64(frame_field::born_ns, f.born_ns);
    w.number(frame_field::time_s, f.time_s);
    w.fixed64(frame_field::parameter_number, f.parameter_number);
    w.bytes(frame_field::parameters, f.parameters);
    if (f.capture_ns != 0) w.fixed64(frame_field::capture_ns, f.capture_ns);
    ring::metadata_reader entries(f.metadata);
    for (ring::metadata_entry e; entries.next(e);)
        w.message(frame_field::metadata, [&](proto::writer& inner) { put_entry(inner, e); });
    for (std::size_t k = 0; k < format.planes.size(); ++k) {
        const ring::plane& p = format.planes[k];
        if (&p == elsewhere && !ring::is_used_in_part(f.used, k)) continue;
        w.message(frame_field::planes, [&](proto::writer& inner) {
            inner.text(plane_field::name, p.name);
            if (&p != elsewhere)
                inner.bytes(
                    plane_field::data,
                    {slot + p.offset, static_cast<std::size_t>(recorded_bytes(format, k, f.used, false))});
            put_used(inner, format, k, f.used);
        });
    }
}

/// A plane in the form in which a message contains it.
struct plane_message {
    std::string_view name;
    std::optional<std::span<const std::byte>> data;
    std::vector<u64> used;
};

plane_message plane_in(std::span<const std::byte> message) {
    plane_message out;
    const bool whole = proto::read(message, [&](const proto::field& f) {
        if (f.number == plane_field::name) out.name = f.as_text();
        if (f.number == plane_field::data) out.data = f.bytes;
        if (f.number == plane_field::used && out.used.size() <= ring::max_rank) out.used.push_back(f.value);
    });
    if (!whole) throw format_error("a plane can't be read");
    return out;
}

void take_plane(const ring::frame_format& format, const ring::plane& p, std::span<const std::byte> data,
                const shm::used_extents& used, bool picture, std::byte* slot) {
    const auto index = static_cast<std::size_t>(&p - format.planes.data());
    const u64 bytes = recorded_bytes(format, index, used, picture);
    if (data.size() != bytes)
        throw format_error(fmt::format("the plane {} has {} bytes, not {}", p.name, data.size(), bytes));
    if (slot != nullptr && !data.empty()) std::memcpy(slot + p.offset, data.data(), data.size());
}

std::size_t take_facts(std::span<const std::byte> message, const ring::frame_format& format, std::byte* slot,
                       frame_facts& out) {
    std::size_t planes = 0;
    const auto plane = [&](const proto::field& f) {
        const plane_message m = plane_in(f.bytes);
        const ring::plane* p = format.find(m.name);
        if (p == nullptr) throw format_error(fmt::format("its ring does not have the plane \"{}\"", m.name));
        try {
            if (!m.used.empty()) ring::set_used(out.used, format, m.name, m.used);
        } catch (const config_error& e) {
            throw format_error(e.what());
        }
        if (!m.data) return;  // this plane is the picture, which is stored in another field
        take_plane(format, *p, *m.data, out.used, false, slot);
        ++planes;
    };
    const bool whole = proto::read(message, [&](const proto::field& f) {
        if (f.number == frame_field::frame_number) out.frame_number = f.value;
        if (f.number == frame_field::born_ns) out.born_ns = f.value;
        if (f.number == frame_field::time_s) out.time_s = f.as_f64();
        if (f.number == frame_field::parameter_number) out.parameter_number = f.value;
        if (f.number == frame_field::parameters) out.parameters.assign(f.bytes.begin(), f.bytes.end());
        if (f.number == frame_field::capture_ns) out.capture_ns = f.value;
        if (f.number == frame_field::metadata) take_entry(f.bytes, out.metadata);
        if (f.number == frame_field::planes) plane(f);
    });
    if (!whole) throw format_error("a message is not a frame");
    return planes;
}

}  // namespace

mcap::schema schema_of(const std::string& name, u16 id) {
    mcap::schema s{id, name, "protobuf", {}};
    proto::writer set(s.data);
    constexpr message_row time[] = {{"Timestamp", time_fields}};
    if (name == jpeg_schema) {
        constexpr message_row jpeg[] = {{"CompressedImage", jpeg_fields}};
        constexpr const char* only_time[] = {"google/protobuf/timestamp.proto"};
        put_file(set, "google/protobuf/timestamp.proto", "google.protobuf", {}, time);
        put_file(set, "foxglove/CompressedImage.proto", "foxglove", only_time, jpeg);
        return s;
    }
    constexpr message_row ours[] = {
        {"Plane", plane_fields}, {"Entry", entry_fields}, {"Frame", frame_fields}};
    put_file(set, "carousel/Frame.proto", "carousel", {}, ours);
    if (name != image_schema) return s;
    put_file(set, "google/protobuf/timestamp.proto", "google.protobuf", {}, time);
    constexpr message_row image[] = {{"RawImage", image_fields}};
    constexpr const char* imports[] = {"google/protobuf/timestamp.proto", "carousel/Frame.proto"};
    put_file(set, "foxglove/RawImage.proto", "foxglove", imports, image);
    return s;
}

std::string schema_name(const ring::frame_format& format) {
    return picture_of(format) != nullptr ? image_schema : frame_schema;
}

void put_frame(mcap::buffer& to, const ring::frame_format& format, const std::string& ring,
               const frame_facts& facts, u64 wall_ns, const std::byte* slot) {
    proto::writer w(to);
    const ring::plane* picture = picture_of(format);
    if (picture == nullptr) return put_facts(w, format, facts, slot, nullptr);
    const auto index = static_cast<std::size_t>(picture - format.planes.data());
    const u64 width = ring::used_extent(*picture, index, 1, facts.used),
              height = ring::used_extent(*picture, index, 0, facts.used);
    w.message(image_field::timestamp, [&](proto::writer& t) {
        t.varint(1, wall_ns / 1'000'000'000U);
        t.varint(2, wall_ns % 1'000'000'000U);
    });
    w.fixed32(image_field::width, static_cast<u32>(width));
    w.fixed32(image_field::height, static_cast<u32>(height));
    w.text(image_field::encoding, encoding_of(*picture));
    w.fixed32(image_field::step, static_cast<u32>(picture->bytes() / picture->shape[0]));
    w.text(image_field::frame_id, ring);
    w.message(image_field::carousel, [&](proto::writer& f) { put_facts(f, format, facts, slot, picture); });
    w.bytes(image_field::data, {slot + picture->offset,
                                static_cast<std::size_t>(recorded_bytes(format, index, facts.used, true))});
}

frame_facts take_frame(std::span<const std::byte> message, const ring::frame_format& format,
                       std::byte* slot) {
    frame_facts out;
    std::size_t planes = 0;
    const ring::plane* picture = picture_of(format);
    if (picture == nullptr) {
        planes = take_facts(message, format, slot, out);
    } else {
        std::optional<std::span<const std::byte>> data;
        const bool whole = proto::read(message, [&](const proto::field& f) {
            if (f.number == image_field::carousel) planes += take_facts(f.bytes, format, slot, out);
            if (f.number == image_field::data) data = f.bytes;
        });
        if (!whole) throw format_error("a message is not a picture");
        if (data) {
            take_plane(format, *picture, *data, out.used, true, slot);
            ++planes;
        }
    }
    if (planes != format.planes.size())
        throw format_error(fmt::format("frame {} has {} planes, its ring {}", out.frame_number, planes,
                                       format.planes.size()));
    return out;
}

}  // namespace carousel::stages
