#include "stages/geometry/gltf_accessor.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace carousel::stages {
namespace {

template <typename T>
T load(std::span<const std::byte> bytes, u64 at) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

u32 components_of(std::string_view type) {
    return type == "SCALAR" ? 1 : static_cast<u32>(type.back() - '0');
}

}  // namespace

gltf_accessor::gltf_accessor(gltf_document& document, const gltf_value& from, const char* key,
                             std::initializer_list<std::string_view> types) {
    const gltf_value a = document.referred(from, key, "accessors");
    if (a.find("sparse")) {
        a.refuse("sparse accessors are not supported; export it without");
    }
    const std::string type = a.text_or("type", "");
    if (std::find(types.begin(), types.end(), type) == types.end()) {
        a.refuse(fmt::format("\"type\" = \"{}\": expected {} for \"{}\"", type.substr(0, 20),
                             fmt::join(types, " or "), key));
    }
    components_ = components_of(type);
    type_ = static_cast<component>(a.integer("componentType", 5120, 5126));
    switch (type_) {
        case component::i8:
        case component::u8:
            size_ = 1;
            break;
        case component::i16:
        case component::u16:
            size_ = 2;
            break;
        case component::u32:
        case component::f32:
            size_ = 4;
            break;
        default:
            a.refuse(fmt::format("\"componentType\" = {}: there is no such type", static_cast<u64>(type_)));
    }
    normalized_ = a.flag_or("normalized", false);
    count_ = a.integer("count", 1, u64{1} << 31U);
    const gltf_value view = document.referred(a, "bufferView", "bufferViews");
    const std::span<const std::byte> whole = document.view(view);
    const u64 element = u64{size_} * components_;
    stride_ = view.integer_or("byteStride", element, 1, 252);
    if (stride_ < element) {
        view.refuse(fmt::format("\"byteStride\" = {}: an element has {} bytes", stride_, element));
    }
    const u64 offset = a.integer_or("byteOffset", 0, 0, u64{1} << 40U);
    const u64 end = offset + stride_ * (count_ - 1) + element;
    if (end > whole.size()) {
        a.refuse(fmt::format("its {} elements end at byte {} of a buffer view of {} bytes", count_, end,
                             whole.size()));
    }
    bytes_ = whole.subspan(offset);
}

f64 gltf_accessor::value(u64 i, u32 k) const {
    const u64 at = i * stride_ + u64{k} * size_;
    switch (type_) {
        case component::i8:
            return normalized_ ? std::max(load<i8>(bytes_, at) / 127.0, -1.0) : load<i8>(bytes_, at);
        case component::u8:
            return load<u8>(bytes_, at) / (normalized_ ? 255.0 : 1.0);
        case component::i16:
            return normalized_ ? std::max(load<i16>(bytes_, at) / 32767.0, -1.0) : load<i16>(bytes_, at);
        case component::u16:
            return load<u16>(bytes_, at) / (normalized_ ? 65535.0 : 1.0);
        case component::u32:
            return load<u32>(bytes_, at);
        default:
            return load<f32>(bytes_, at);
    }
}

u32 gltf_accessor::index(u64 i) const {
    const u64 at = i * stride_;
    switch (type_) {
        case component::u8:
            return load<u8>(bytes_, at);
        case component::u16:
            return load<u16>(bytes_, at);
        default:
            return load<u32>(bytes_, at);
    }
}

void gltf_accessor::require_indices(const gltf_value& from) const {
    if (type_ != component::u8 && type_ != component::u16 && type_ != component::u32) {
        from.refuse("its indices are not whole numbers of 8, 16 or 32 bits without a sign");
    }
}

}  // namespace carousel::stages
