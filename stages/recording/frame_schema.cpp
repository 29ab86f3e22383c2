#include "stages/recording/frame_schema.hpp"

#include <span>

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

}  // namespace

mcap::schema schema_of(const std::string& name, u16 id) {
    mcap::schema s{id, name, "protobuf", {}};
    proto::writer set(s.data);
    constexpr message_row ours[] = {
        {"Plane", plane_fields}, {"Entry", entry_fields}, {"Frame", frame_fields}};
    put_file(set, "carousel/Frame.proto", "carousel", {}, ours);
    if (name != image_schema) return s;
    constexpr message_row time[] = {{"Timestamp", time_fields}};
    put_file(set, "google/protobuf/timestamp.proto", "google.protobuf", {}, time);
    constexpr message_row image[] = {{"RawImage", image_fields}};
    constexpr const char* imports[] = {"google/protobuf/timestamp.proto", "carousel/Frame.proto"};
    put_file(set, "foxglove/RawImage.proto", "foxglove", imports, image);
    return s;
}

}  // namespace carousel::stages
